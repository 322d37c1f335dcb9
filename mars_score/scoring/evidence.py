"""What must be read of a row before it can be scored, and the reader of it: each different item once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mars_score.augment.augmented import AugmentedReference
from mars_score.data.overlap import windows
from mars_score.scoring.contradiction import ContradictionReader
from mars_score.scoring.embeddings import Embedder, Embedding
from mars_score.scoring.likelihood import Likelihood, LikelihoodReader
from mars_score.settings import Settings, SimilaritySettings
from mars_score.settings.fields import UNSAMPLED_TASKS
from mars_score.store.lookup import from_json, to_json
from mars_score.store.runtime import Runtime

EMBED = "embed"  # items: texts -> Embedding
MATCH = "match"  # items: texts -> Embedding with token vectors
LIKELIHOOD = "likelihood"  # items: (context, candidate) -> Likelihood
CONTRADICTION = "contradiction"  # items: (premise, candidate) -> probability

Needs = dict[str, list[Any]]  # kind -> different items
Evidence = Mapping[str, Mapping[Any, Any]]  # kind -> item -> what was read


def kinds(settings: SimilaritySettings) -> tuple[str, ...]:
    """The kinds of evidence that these settings may need."""
    tokens = settings.matching == "tokens"
    wanted = {
        EMBED: not tokens or settings.context_weight > 0,
        MATCH: tokens,
        LIKELIHOOD: settings.likelihood_weight > 0,
        CONTRADICTION: settings.contradiction_penalty is not None,
    }
    return tuple(kind for kind, want in wanted.items() if want)


@dataclass(frozen=True)
class ScorableRow:
    """A candidate with all that it is compared with.

    Attributes:
        candidate: without outer whitespace.
        references: with their augmentations; none where the candidate is blank or is scored without references.
        context: blank for none.
        task: what the candidate is to the context; see :mod:`mars_score.augment.sampling.prompts`.
        samples: drawn given the context.
    """

    candidate: str
    references: tuple[AugmentedReference, ...]
    context: str
    task: str = ""
    samples: tuple[str, ...] = ()


def uses_context(row: ScorableRow, settings: SimilaritySettings) -> bool:
    """Whether similarity with the context counts.

    Not where it is a question or data, unless there are no references.
    """
    return settings.context_weight > 0 and not (row.references and row.task in UNSAMPLED_TASKS)


def uses_likelihood(row: ScorableRow, settings: SimilaritySettings) -> bool:
    """Whether the likelihood counts.

    Not where dull texts are likely: in a dialogue, and, unless there are no references, after a question that is a
    single line.
    """
    question = row.task == "answer" and "\n" not in row.context and bool(row.references)
    return settings.likelihood_weight > 0 and not (row.task == "dialogue" or question)


def needs(settings: SimilaritySettings, row: ScorableRow) -> Needs:
    """What must be read to score a row; nothing for a blank candidate."""
    found: Needs = {kind: [] for kind in kinds(settings)}
    if row.candidate:
        texts = [text for reference in row.references for text in reference.texts]
        found[MATCH if settings.matching == "tokens" else EMBED] += [row.candidate, *texts, *row.samples]
        if uses_context(row, settings):
            found[EMBED] += windows(row.context)
        if uses_likelihood(row, settings):
            found[LIKELIHOOD].append((row.context, row.candidate))
        if settings.contradiction_penalty is not None:
            premises = [*windows(row.context), *(one.reference for one in row.references)]
            found[CONTRADICTION] += [(premise, row.candidate) for premise in premises]
    return {kind: list(dict.fromkeys(items)) for kind, items in found.items()}


def all_needs(settings: SimilaritySettings, of_rows: Iterable[Needs]) -> Needs:
    """What several rows need, each different item once."""
    found: dict[str, dict[Any, None]] = {kind: {} for kind in kinds(settings)}
    for one in of_rows:
        for kind, items in one.items():
            found[kind].update(dict.fromkeys(items))
    return {kind: list(items) for kind, items in found.items()}


def encode(kind: str, evidence: Any) -> bytes:
    """An item's evidence as bytes."""
    return to_json(evidence) if kind == CONTRADICTION else bytes(evidence.kept)


def decode(kind: str, kept: bytes) -> Any:
    """An item's evidence from its bytes."""
    if kind == CONTRADICTION:
        return from_json(kept)
    return Likelihood.of(kept) if kind == LIKELIHOOD else Embedding(kept, with_tokens=kind == MATCH)


class Reader:
    """Reads evidence, kept or new; models are loaded only for what is new, and stay.

    Args:
        settings: name the models.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
        remember: see :class:`mars_score.scoring.likelihood.LikelihoodReader`.
    """

    def __init__(self, settings: Settings, runtime: Runtime, *, remember: bool = False) -> None:
        self._settings, self._runtime, self._remember = settings, runtime, remember

    @cached_property
    def _embedder(self) -> Embedder:
        return Embedder(self._settings.models, self._runtime)

    @cached_property
    def _likelihoods(self) -> LikelihoodReader:
        return LikelihoodReader(self._settings, self._runtime, remember=self._remember)

    @cached_property
    def _contradictions(self) -> ContradictionReader:
        return ContradictionReader(self._settings.models, self._runtime)

    def read(
        self, kind: str, items: Sequence[Any], progress: Callable[[int, int], None] | None = None
    ) -> dict[Any, Any]:
        """The evidence of each different item; ``progress`` counts the new ones.

        Raises:
            ModelUnavailableError: a model cannot be loaded, or has no token vectors.
        """
        if kind == LIKELIHOOD:
            return dict(self._likelihoods.read(items, progress))
        if kind == CONTRADICTION:
            return dict(self._contradictions.read(items, progress))
        return dict(self._embedder.embed(items, progress, tokens=kind == MATCH))

    def offsets(self, texts: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """Where the tokens of each text are among its characters; loads the encoder."""
        return self._embedder.offsets(texts)
