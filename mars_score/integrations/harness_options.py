"""Options of MARS in evaluation harnesses, whose word "task" is a benchmark."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mars_score.data.validation import Where, check_rows
from mars_score.rows import Row
from mars_score.scorer import MarsScorer


class HarnessOptions(NamedTuple):
    """Options of the metric.

    Attributes:
        context: name of the field, or template, of a document's context.
        use_references: False: candidates are scored by their contexts alone.
        scorer: has loaded nothing yet.
    """

    context: str
    use_references: bool
    scorer: MarsScorer

    def check(self, references: Any, contexts: Any, where: Mapping[str, Where]) -> list[Row]:
        """Check the columns of documents, those that count; ``where`` names documents in errors, by column."""
        settings = self.scorer.settings
        return check_rows(
            references if self.use_references else None,
            contexts if settings.use_context else None,
            use_context=settings.use_context,
            task=settings.task,
            where=lambda column: where.get(column, f"{column}[{{}}]".format),
        )


def read_options(given: Mapping[str, Any]) -> HarnessOptions:
    """Read ``context``, ``use_references``, ``context_task``, and arguments and settings of :class:`MarsScorer`.

    ``context_task`` is the setting ``task`` of :class:`MarsScorer`.

    Raises:
        TypeError, ValueError: an unknown setting, or one that is out of range.
    """
    options = dict(given)
    context, use_references = options.pop("context", "context"), options.pop("use_references", True)
    if "task" in options:
        raise TypeError('unknown option "task", a harness\'s word for a benchmark; did you mean "context_task"?')
    scorer = MarsScorer(task=options.pop("context_task", None), **options)
    scorer.check_inputs(() if use_references else None)
    return HarnessOptions(context, use_references, scorer)
