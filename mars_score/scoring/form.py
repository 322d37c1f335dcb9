"""The form of a score: all its constants, and how they become the weights of a row's terms."""

from dataclasses import dataclass
from typing import Self

from mars_score.data.words import split_words
from mars_score.models import mini_nli
from mars_score.scoring.row import ScorableRow
from mars_score.settings import Settings
from mars_score.settings.stages import SimilaritySettings


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
    def of(cls, settings: Settings) -> Self:
        """The form that a scorer's settings make; without an entailment model contradictions have no weight."""
        values, model = dict(vars(settings.similarity)), settings.models.entailment_model
        if model is None:
            values["contradiction_penalty"] = 0.0
        return cls(**values, english_only=model == mini_nli.NAME)

    def reads(self, row: ScorableRow) -> bool:
        """Whether the entailment model can read a row."""
        return not self.english_only or row.english

    def weights(self, row: ScorableRow, closeness: float = 0.0) -> dict[str, float]:
        """The weight of each term that a row's score has, from all of the row but the candidate.

        Args:
            row: a candidate with what it is compared with.
            closeness: mean over the references of the cosine with the nearest part of the context. Without it
                context and samples have the largest weights that they can have.
        """
        weights = {}
        if row.references:
            words = sum(len(split_words(one.reference)) for one in row.references) / len(row.references)
            openness = min(1.0, max(0.0, (1.0 - closeness) / (1.0 - self.close)))
            share = words / (words + self.context_words) * openness
            likelihood_share = words**2 / (words**2 + self.likelihood_words**2)
            weights["references"] = 1.0
            if row.context and self.context_weight:
                # Where the context is data, what to say is given, and the words are free.
                name, weight = ("sentences", 1.0) if row.task == "data" else ("context", share)
                weights[name] = self.context_weight * weight
                weights["references"] -= weights[name]
        else:
            share = likelihood_share = 1.0
            weights["context"] = self.context_weight
        if row.samples:
            weights["samples"] = self.sample_weight * share**2
        if self.likelihood_weight and row.task != "dialogue":  # the likely replies are the dull ones
            weights["likelihood"] = self.likelihood_weight * likelihood_share
        if self.repetition_penalty:
            weights["repetition"] = -self.repetition_penalty
        if self.contradiction_penalty and self.reads(row):
            weights["contradiction"] = -self.contradiction_penalty
        return weights
