"""What a metric is: an object with a ``score`` method; and the models that metrics share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Literal, Protocol

from mars_score.data.validation import Row
from mars_score.models.fingerprints import Current
from mars_score.models.loading import shared_model
from mars_score.scorer import MarsScorer
from mars_score.scoring.evidence import Reader


class Models:
    """The models of a :class:`MarsScorer` with these arguments, shared by all metrics; loaded when first used."""

    def __init__(self, **arguments: Any) -> None:
        scorer = MarsScorer(**arguments)
        self.arguments, self.settings, self.runtime = arguments, scorer.settings, scorer.runtime

    @cached_property
    def reader(self) -> Reader:
        """Sentence vectors and likelihoods, stored or new."""
        return Reader(self.settings, self.runtime)

    def encoder(self) -> Any:
        """The sentence encoder, a ``SentenceTransformer``; raises ModelUnavailableError."""
        return shared_model("encoder", self.settings.models, self.runtime, in_torch=True)

    def language_model(self) -> Any:
        """The language model, a ``CausalLanguageModel``; raises ModelUnavailableError."""
        return shared_model("language_model", self.settings.models, self.runtime, in_torch=True)


class Scoring(Protocol):
    """What any object needs to be a metric; it may have the attributes of :class:`Metric` and a ``key``, too."""

    def score(self, rows: Sequence[tuple[str, tuple[str, ...], str]], corpus: Sequence[str]) -> Sequence[float]:
        """One score per row, larger is better; see :meth:`Metric.score`."""


class Metric(ABC):
    """A metric of the registry."""

    title: str  # as it is written in tables: "ROUGE-L"
    note: str = ""  # what a reader of a table must know, such as how the context is cut
    minimum: float = 0.0  # the score of a blank candidate, which ``score`` never sees: the metric's lowest value
    uses_corpus: bool = False  # whether a score depends on ``corpus``
    method: ClassVar[int] = 1  # to raise when the same texts, models and packages come to give other scores
    packages: ClassVar[tuple[str, ...]] = ()  # the distributions that it computes with
    # The model that it computes with: the name of an attribute of the settings' models.
    model: ClassVar[Literal["encoder", "language_model"] | None] = None

    def __init__(self, models: Models) -> None:
        self.models = models

    def key(self) -> Sequence[Any]:
        """What scores depend on besides the texts; None is among it if that is not known, and none are stored.

        Raises:
            ModelUnavailableError, ImportError: a model, data or a package is missing; says how to get it.
        """
        try:
            key: list[Any] = [self.title, self.method, *map(version, self.packages)]
        except PackageNotFoundError as fault:
            raise ImportError(f"{fault.name} is not installed; run: pip install 'mars-score[meta]'") from fault
        if self.model:
            models = self.models.settings.models
            key.append(Current(getattr(models, self.model), getattr(self.models, self.model)).key(models.dtype))
        return key

    @abstractmethod
    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """One score per row, each of which depends on its row and on ``corpus`` alone.

        Args:
            rows: no candidate is blank.
            corpus: the different references of the whole data set, for document frequencies.

        Raises:
            ModelUnavailableError, ImportError: as ``key``.
        """


class OwnMetric(Metric):
    """A user's object with a ``score`` method, with defaults for the attributes that it lacks.

    ``score`` gets rows of candidate, references and context (no candidate is blank) and all references of the
    set; it returns one number per row, larger is better. Its title is the name of its class, a blank candidate
    scores 0.0. Without a ``key`` its scores are computed in every run; with one they are kept in the store.

    Raises:
        TypeError: it has no ``score`` method.
    """

    def __init__(self, models: Models, scoring: Scoring) -> None:
        if not callable(getattr(scoring, "score", None)):
            raise TypeError(f"a metric is a name or an object with a score method, got {scoring!r:.60}")
        super().__init__(models)
        self._scoring = scoring
        self.title = getattr(scoring, "title", type(scoring).__name__)
        for name in ("note", "minimum", "uses_corpus"):
            setattr(self, name, getattr(scoring, name, getattr(Metric, name)))

    def key(self) -> Sequence[Any]:
        """The object's own; not known without one."""
        return self._scoring.key() if hasattr(self._scoring, "key") else [None]

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """The object's scores, as floats."""
        return [float(score) for score in self._scoring.score([row[:3] for row in rows], corpus)]
