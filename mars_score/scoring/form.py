"""The form of a score: all its constants, and how they become the weights of a row's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mars_score.data.words import split_words
from mars_score.models import mini_nli
from mars_score.settings import Settings, SimilaritySettings
from mars_score.settings.fields import settings_of

if TYPE_CHECKING:
    from mars_score.scoring.row import ScorableRow


@dataclass(frozen=True)
class Weights:
    """The factor of each term of a row's score; None where the row has no such term.

    Attributes:
        references, sentences, context, samples, likelihood, repetition, contradiction: see
            :mod:`mars_score.scoring.terms`.
        copying: whether words that are copied from the context count as repeated ones.
    """

    references: float | None = None
    sentences: float | None = None
    context: float | None = None
    samples: float | None = None
    likelihood: float | None = None
    repetition: float | None = None
    contradiction: float | None = None
    copying: bool = False


@dataclass(frozen=True)
class Form(SimilaritySettings):
    """All that a score is computed with: the settings, and constants that were chosen on development sets."""

    # Words of a reference at which the context has half of its largest weight, and samples a quarter: a short
    # reference is a fact that has to be met.
    context_words: float = 3.0
    # Words of a reference at which the likelihood, a mean over words, has half of its largest weight.
    likelihood_words: float = 20.0
    # Cosine of the references with the context from which context and samples lose weight, down to none at 1:
    # references that repeat the context leave it nothing to say.
    close: float = 0.7
    # Nats that the context may add to a likelihood; more is had by copying from it, and is no merit.
    lift_limit: float = 2.5
    # Weight of the log probability without the context, beside what the context adds, in the likelihood.
    alone: float = 0.5
    # Whether the entailment model reads English alone: then rows in other languages are not read by it.
    english_only: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Form:
        """The form that a scorer's settings make; without an entailment model contradictions have no weight."""
        values = {one.name: getattr(settings.similarity, one.name) for one in settings_of(SimilaritySettings)}
        model = settings.models.entailment_model
        if model is None:
            values["contradiction_penalty"] = 0.0
        return cls(**values, english_only=model == mini_nli.NAME)

    def reads(self, row: ScorableRow) -> bool:
        """Whether the entailment model can read a row."""
        return not self.english_only or row.english

    def weights(self, row: ScorableRow, closeness: float = 0.0) -> Weights:
        """The weights of a row's terms, from all of it but the candidate.

        Args:
            row: a candidate with what it is compared with.
            closeness: mean over the references of the cosine with the nearest part of the context. Without it
                context and samples have the largest weights that they can have.
        """
        repetition = -self.repetition_penalty if self.repetition_penalty else None
        contradiction = -self.contradiction_penalty if self.contradiction_penalty and self.reads(row) else None
        has_context = bool(row.context) and self.context_weight > 0
        likelihood = self.likelihood_weight
        if row.task == "dialogue":
            likelihood = 0.0  # the likely replies are the dull ones
        if not row.references:
            return Weights(
                context=self.context_weight,
                samples=self.sample_weight if row.samples else None,
                likelihood=likelihood or None,
                repetition=repetition,
                contradiction=contradiction,
            )
        words = sum(len(split_words(one.reference)) for one in row.references) / len(row.references)
        openness = min(1.0, max(0.0, (1.0 - closeness) / (1.0 - self.close)))
        share = words / (words + self.context_words) * openness
        is_data = has_context and row.task == "data"
        context = self.context_weight * share if has_context and not is_data else None
        sentences = self.context_weight if is_data else None  # what to say is given, the words are free
        return Weights(
            references=1.0 - (context or 0.0) - (sentences or 0.0),
            sentences=sentences,
            context=context,
            samples=self.sample_weight * share**2 if row.samples else None,
            likelihood=likelihood * words**2 / (words**2 + self.likelihood_words**2) or None,
            repetition=repetition,
            contradiction=contradiction,
            copying=row.task == "dialogue",
        )
