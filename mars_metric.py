"""MARS as a module of Hugging Face evaluate; the method itself is in the package mars_score.

evaluate reads the import lines of this file by a regular expression: an import of mars_score is followed by the
name under which pip finds the package, and by nothing else.
"""

import inspect
from typing import Any

import datasets
import evaluate

import mars_score  # From: mars-score
from mars_score.integrations import evaluate_rows  # From: mars-score
from mars_score.models.loading import free_models  # From: mars-score

_CITATION = """\
@inproceedings{liu-etal-2021-language,
    title = "Language Model Augmented Relevance Score",
    author = "Liu, Ruibo and Wei, Jason and Vosoughi, Soroush",
    booktitle = "Proceedings of ACL-IJCNLP 2021 (Volume 1: Long Papers)",
    year = "2021",
    doi = "10.18653/v1/2021.acl-long.521",
    pages = "6677--6690",
}
"""

_DESCRIPTION = """\
MARS (Language Model Augmented Relevance Score) scores generated text against human references AND the context
that it was generated from. By default it is the metric of the paper: a language model fills in masked words of the
references given the context, and the score is the weighted similarity of a candidate with these augmented
references. Variant "plus" adds up the similarity with the references and with the context, how likely a language
model finds the candidate, and what it repeats; "fast" is the same without a language model.
"""

_KWARGS_DESCRIPTION = """
Scores candidates given references and contexts.

Args:
    predictions (`list` of `str`): candidates, one per row. A blank one scores 0.0.
    references (`list` of `str` or of `list` of `str`): one or several human references per row; rows may be mixed.
        None: all candidates are scored by their contexts alone, as variants `"plus"` and `"fast"` can.
    contexts (`list` of `str` or of `list` of `str`): what the text was generated from (a document, a question, a
        dialogue), one per row; the strings of a list are the turns of a dialogue. May be omitted with
        `use_context=False`.
    samples (`list` of `str` or of `list` of `str`): texts that others than the scored system, such as a good
        language model, wrote for the context, as variants `"plus"` and `"fast"` can use them; an empty list where
        a row has none. May be omitted.
    detailed (`bool`): also return the scores of the rows, the signature and the augmented references.
    explain (`bool`): also return why each score is what it is.
    **settings: settings and arguments of `mars_score.MarsScorer`, for one call, or at `evaluate.load` for
        all calls: `preset` (`"mini"`, `"base"`, `"paper"` or `"multilingual"`: which models), `variant`
        (`"paper"`, `"plus"` or `"fast"`; also the second argument of `evaluate.load`), `language`, `task`,
        `use_context`, `engine`, `device`, `batch_size`, `store` and others. Unknown ones are refused.

Returns:
    mars (`float`): mean score of the rows, mostly in [0, 1]; an unlikely or repetitive text may score below 0.
    scores (`list` of `float`): score of each row; with `detailed=True`.
    signature (`str`): all that the scores depend on besides the texts; with `detailed=True`.
    augmented_references (`list` of `list` of `str`): the references of each row and their augmentations, without
        repetitions; none where the candidate is blank; with `detailed=True`.
    explanations (`list` of `dict`): for each row what each term gave, the words of each reference with the
        candidate's words that they match, the nearest sample and sentence of the context; with `explain=True`.

Examples:

    >>> import evaluate
    >>> mars = evaluate.load("mars", "plus", preset="mini")
    >>> results = mars.compute(
    ...     predictions=["She took the bus to work until it was fixed.", "The cat slept on the sofa."],
    ...     references=["She went to work by bus.", "She went to work by bus."],
    ...     contexts=["Jane's car broke down on Monday.", "Jane's car broke down on Monday."],
    ...     detailed=True,
    ... )
    >>> results["scores"][0] > results["scores"][1]
    True
    >>> sorted(results)
    ['augmented_references', 'mars', 'scores', 'signature']
    >>> mars.add(prediction="He is happy.", reference="He feels happy.", context="How is Tom today?")
    >>> list(mars.compute())
    ['mars']
"""

# Arguments of evaluate's own constructor, which silently ignores all others.
_EVALUATE_ARGUMENTS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters) - {"self", "kwargs"}


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Mars(evaluate_rows.MetricOfRows):
    """MARS as a metric of Hugging Face evaluate.

    Args:
        config_name: evaluate's second argument: the variant; ``"default"`` is ``"paper"``.
        arguments: those of ``evaluate.Metric`` (``cache_dir``, ``experiment_id``, ...), and settings and arguments
            of ``mars_score.MarsScorer``, for all calls that do not override them.

    Raises:
        TypeError: an unknown setting.
        ValueError: an unknown preset or variant, or a value out of range.
    """

    def __init__(self, config_name: str | None = None, **arguments: Any) -> None:
        base = {name: value for name, value in arguments.items() if name in _EVALUATE_ARGUMENTS}
        self._options = {name: value for name, value in arguments.items() if name not in base}
        if config_name not in (None, "default"):
            variant = self._options.setdefault("variant", config_name)
            if variant != config_name:
                raise ValueError(f"config_name {config_name!r} and variant {variant!r} differ; give one")
        scorer = mars_score.MarsScorer(**self._options)  # checks them; loads nothing
        super().__init__(config_name=config_name, **base)
        self.use_context = scorer.settings.use_context

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": text, "references": datasets.Sequence(text), "contexts": text}
            ),
            reference_urls=["https://aclanthology.org/2021.acl-long.521"],
            license="Apache-2.0",
        )

    def compute(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        contexts: Any = None,
        samples: Any = None,
        detailed: bool = False,
        explain: bool = False,
        **settings: Any,
    ) -> dict[str, Any] | None:
        """Score the rows given here together with those that were added before.

        Bad input and unknown settings raise before any model loads and leave the rows added before as they are;
        if the scoring itself fails, they are dropped.

        With ``num_process`` at load, process 0 scores the rows of all processes together, its own first; the
        others get None and may have no rows. No process may add the next rows before process 0 is done.
        """
        for name in settings:
            evaluate_rows.refuse_other_names(name)
        scorer = mars_score.MarsScorer(**{**self._options, **settings})
        columns = (predictions, references, contexts, samples)
        return self.compute_rows(columns, scorer, detailed=detailed, explain=explain)

    @staticmethod
    def free() -> None:
        """Release the models of all instances in this process; they are loaded again when needed."""
        free_models()

    def _compute(
        self,
        predictions: list[str],
        references: list[list[str]],
        contexts: list[str],
        scorer: mars_score.MarsScorer,
        samples: Any,
        detailed: bool,
        explain: bool,
    ) -> dict[str, Any]:
        evaluate_rows.check_mix({bool(row) for row in references})  # also of other processes
        given = references if any(references) else None
        result = scorer.score(predictions, given, contexts, samples=samples, explain=explain)
        found: dict[str, Any] = {"mars": result.score}
        if detailed:
            found["scores"] = result.scores
            found["signature"] = str(result.signature)
            found["augmented_references"] = [list(row.texts) for row in result.rows]
        if explain:
            found["explanations"] = [explanation.to_dict() for explanation in result.explanations]
        return found
