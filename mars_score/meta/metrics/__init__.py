"""The registry of metrics: MARS, common alternatives, and trivial baselines.

A metric is a subclass of :class:`Metric` and a line in ``PEERS``. Variants of MARS need no class:
``mars[sigma=0,planner=none]`` is MARS with these settings, and ``references=false`` scores by the contexts alone.
"""

from __future__ import annotations

import json
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from mars_score.data.checking import with_task
from mars_score.errors import MarsWarning
from mars_score.options import options_of
from mars_score.rows import Row
from mars_score.settings import CONFIGS

if TYPE_CHECKING:
    from mars_score.results import MarsResult
    from mars_score.scorer import MarsScorer
    from mars_score.variants.variant import Variant

# Name -> title and settings, in the order of tables.
VARIANTS = {
    "mars": ("MARS", ""),
    "mars_paper": ("MARS, paper", "variant=paper"),
    "mars_plus": ("MARS, plus", "variant=plus"),
    "mars_fast": ("MARS, fast", "variant=fast"),
    "mars_no_context": ("MARS without context", "use_context=false"),
    "mars_no_references": ("MARS, plus, without references", "variant=plus,references=false"),
    "mars_fast_no_references": ("MARS, fast, without references", "variant=fast,references=false"),
    "mars_no_planning": ("MARS, paper, without planning", "variant=paper,planner=none"),
    "reference_cosine": ("cosine with reference", "variant=paper,max_mask_ratio=0,strip_urls_hashtags=false"),
}
# Name -> module and class; a module is imported with the first of its metrics.
PEERS = {
    "bleu": "lexical.Bleu",
    "bleu1": "lexical.Bleu1",
    "meteor": "lexical.Meteor",
    "rouge_l": "lexical.RougeL",
    "chrf": "lexical.Chrf",
    "bertscore": "neural.BertScore",
    "sentence_mover": "neural.SentenceMover",
    "moverscore": "neural.MoverScore",
    "perplexity": "neural.Perplexity",
    "context_perplexity": "neural.ContextPerplexity",
    "context_cosine": "neural.ContextCosine",
    "length": "lexical.Length",
}
METRICS = (*VARIANTS, *PEERS)
_BRACKETS = re.compile(r"mars\[(.*)\]", re.DOTALL)


def parse_names(text: str) -> list[str]:
    """Split names at commas outside brackets; raise ValueError for an unknown name."""
    names = [name.strip() for name in re.split(r",(?![^\[]*\])", text) if name.strip()]
    for name in names:
        _check(name)
    return names


def make_metric(name: str | Scoring, models: Models) -> Metric:
    """Make a metric from a name of :data:`METRICS`, a name with brackets (see above), or a user's object.

    Raises:
        ValueError: a name is unknown, or a setting out of range or without effect.
        TypeError: a setting is unknown, or an object has no ``score`` method.
    """
    if not isinstance(name, str):
        return name if isinstance(name, Metric) else OwnMetric(models, name)
    _check(name)
    if name in PEERS:
        return _load(PEERS[name])(models)
    if brackets := _BRACKETS.fullmatch(name):
        return MarsVariant(models, f"MARS, {brackets[1]}", brackets[1])
    return MarsVariant(models, *VARIANTS[name])


def _load(metric: str) -> Callable[..., Metric]:
    module, name = metric.split(".")
    return getattr(import_module(f"{__name__}.{module}"), name)  # type: ignore[no-any-return]


def _check(name: str) -> None:
    if name in METRICS or _BRACKETS.fullmatch(name):
        return
    start, bracket, settings = name.partition("[")
    near = [f"mars[{settings}"] if bracket else get_close_matches(start, METRICS, 1)
    hint = f"did you mean {near[0]!r}?" if near else "mars meta --help lists the names"
    raise ValueError(f"unknown metric {name!r}; {hint}")


class Models:
    """The models of a :class:`mars_score.MarsScorer` and its arguments, shared by all metrics."""

    def __init__(self, **arguments: Any) -> None:
        from mars_score.scorer import MarsScorer

        scorer = MarsScorer(**arguments)
        self.arguments, self.runtime, self.calls = arguments, scorer.runtime, scorer.calls


class Scoring(Protocol):
    """The method of a user's metric, which may also have the attributes of :class:`Metric`."""

    def score(self, rows: Sequence[tuple[str, tuple[str, ...], str]], corpus: Sequence[str]) -> Sequence[float]:
        """Return one score per (candidate, references, context), larger is better; see :meth:`Metric.score`."""


class Metric(ABC):
    """A metric of the registry.

    Attributes:
        title: as in tables, such as "ROUGE-L".
        note: for readers of tables, such as how the context is cut.
        minimum: the lowest value, which a blank candidate gets.
    """

    title: str
    note: str = ""
    minimum: float = 0.0

    def __init__(self, models: Models) -> None:
        self.models = models

    @abstractmethod
    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return one score per row, which depends on its row and on ``corpus`` alone.

        Args:
            rows: no candidate is blank.
            corpus: the different references of the whole data set, for document frequencies.

        Raises:
            ModelUnavailableError, ImportError: a model, data or a package is missing; the remedy is named.
        """


class OwnMetric(Metric):
    """A user's object with a ``score`` method; its default title is the name of its class."""

    def __init__(self, models: Models, scoring: Scoring) -> None:
        if not callable(getattr(scoring, "score", None)):
            raise TypeError(f"a metric is a name or an object with a score method, got {scoring!r:.60}")
        super().__init__(models)
        self._scoring = scoring
        self.title = getattr(scoring, "title", type(scoring).__name__)
        self.note = getattr(scoring, "note", Metric.note)
        self.minimum = getattr(scoring, "minimum", Metric.minimum)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the object's scores, as floats."""
        texts = [(row.candidate, row.references, row.prompt) for row in rows]
        return [float(score) for score in self._scoring.score(texts, corpus)]


class MarsVariant(Metric):
    """MARS with changed settings; settings of all metrics that have no effect with these are ignored.

    Args:
        models: shared by all metrics.
        title: as in tables.
        changes: ``setting=value`` joined by commas; values are JSON, or else strings.

    Raises:
        ValueError, TypeError: a setting is unknown, out of range or without effect.
    """

    def __init__(self, models: Models, title: str, changes: str) -> None:
        super().__init__(models)
        self.title = title
        settings = _parse_settings(changes)
        self._uses_references = settings.pop("references", True)
        self._arguments, self._variant = _merge(models.arguments, settings)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the scores of :meth:`result`."""
        return self.result(rows, corpus).scores

    def scorer(self, corpus: Sequence[str] = ()) -> MarsScorer:
        """Return a scorer with these settings, which counts IDF over ``corpus`` unless they have an IDF corpus."""
        from mars_score.scorer import MarsScorer

        idf: dict[str, Any] = {"idf_corpus": corpus} if corpus and self._variant.idf_counter() is not None else {}
        return MarsScorer(**self._arguments, **idf)

    def result(self, rows: Sequence[Row], corpus: Sequence[str], scorer: MarsScorer | None = None) -> MarsResult:
        """Score with all details; candidates may be blank. The setting ``task`` overrides the tasks of rows."""
        scorer = scorer or self.scorer(corpus)
        scorer.check_inputs(has_references=self._uses_references)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MarsWarning)  # The result has the same notices.
            return scorer.score_rows([self._with_settings(row) for row in rows])

    def _with_settings(self, row: Row) -> Row:
        """Return a row with the task of these settings, without texts that do not count with them."""
        settings = self._variant.settings
        if not self._uses_references and not row.context:
            raise ValueError(f"the context of {row.candidate!r:.60} is blank, and references are not used")
        counting = replace(
            row,
            references=row.references if self._uses_references else (),
            samples=row.samples if self._variant.takes_samples else (),
            context=row.context if settings.use_context else "",
            question=row.question if settings.use_context else "",
        )
        return with_task(counting, settings.task or (row.task if settings.use_context else "text"))


def _merge(arguments: Mapping[str, Any], changes: Mapping[str, Any]) -> tuple[dict[str, Any], Variant]:
    """Merge changes into the arguments of all metrics; return the arguments of a scorer, and its variant."""
    from mars_score.scorer import MarsScorer

    constants = {option.name for config in CONFIGS.values() for option in options_of(config)}
    merged = {**{name: value for name, value in arguments.items() if name not in constants}, **changes}
    variant = MarsScorer(**merged).variant
    for name, value in arguments.items():
        if name in constants and name not in changes:
            with suppress(ValueError):  # A constant without effect is left out.
                variant = MarsScorer(**merged, **{name: value}).variant
                merged[name] = value
    return merged, variant


def _parse_settings(changes: str) -> dict[str, Any]:
    """Parse ``"sigma=0,planner=none"`` to ``{"sigma": 0, "planner": "none"}``."""
    parsed = {}
    for change in re.split(r",(?=\s*\w+=)", changes) if changes.strip() else ():
        name, sign, value = change.strip().partition("=")
        if not sign:
            raise ValueError(f"a variant of MARS is written mars[setting=value,...], got {change!r}")
        try:
            parsed[name] = json.loads(value)
        except json.JSONDecodeError:
            parsed[name] = value
    return parsed
