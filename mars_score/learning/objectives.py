"""What a trained encoder learns from: ratings, synthetic pairs, or damaged texts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from mars_score.data.rated import check_names
from mars_score.learning import PAIRS, SHARE, Objective
from mars_score.learning.contrastive import LsHead, fit_contrast
from mars_score.learning.encoder import EncoderHead
from mars_score.learning.pairs import Source, infillers, make_pairs
from mars_score.learning.pretraining import DAMAGE, pretrain
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.signals import SIGNALS, read_signals
from mars_score.learning.training import TrainingSettings
from mars_score.learning.translation import Model, RoundTrip
from mars_score.models.loading import load_language_model
from mars_score.scoring.head_folder import HeadFolder, read_head
from mars_score.scoring.heads import Example, check_fits
from mars_score.settings import Settings
from mars_score.store.runtime import Runtime


@dataclass(frozen=True)
class EncoderTraining:
    """How an encoder is to be trained.

    Attributes:
        objective: "pretrain": to predict signals of synthetic pairs; "ratings": those of people; "contrastive": to
            prefer texts to their damaged versions.
        kind: of the head: "encoder" or "ls".
        start: folder of a head whose weights it starts from; None: the preset's encoder.
        pairs: synthetic pairs, for "pretrain".
        share: of their texts, in [0, 1], that the language model infills and reads.
        translators: Hub ids or folders of two translation models, there and back, for "pretrain"; None: none.
        entailment: of a sequence classifier with three classes, for "pretrain"; None: none.
        weights: of the signals' losses by name, :data:`mars_score.learning.pretraining.DAMAGE` for the order of
            degrees of damage; the others have 1. A signal with weight 0 is not computed.
        training: how long and how fast.
    """

    objective: Objective = "ratings"
    kind: Literal["encoder", "ls"] = "encoder"
    start: str | os.PathLike[str] | None = None
    pairs: int = PAIRS
    share: float = SHARE
    translators: tuple[str, str] | None = None
    entailment: str | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def run(
        self,
        out: str | os.PathLike[str],
        settings: Settings,
        runtime: Runtime,
        sets: Sequence[TrainingSet] = (),
        sources: Sequence[Source] = (),
    ) -> HeadFolder:
        """Train and save; continued where an earlier run with the same input was stopped.

        Args:
            out: folder of the head; made where it is missing.
            settings: name the models.
            runtime: see :class:`mars_score.store.runtime.Runtime`.
            sets: rated sets, for "ratings".
            sources: texts to make pairs of or to damage, for the other objectives.

        Raises:
            ValueError: nothing to learn from; an unknown signal; a checkpoint or a start that does not fit.
            ModelUnavailableError, UnsupportedModelError, ImportError: a model or a package is missing or unfit.
        """
        folder = Path(out)
        cls = LsHead if self.kind == "ls" else EncoderHead
        head = cls(settings, runtime, self.training, checkpoints=folder)
        if self.start is not None:
            saved = read_head(self.start)
            check_fits(replace(saved, settings={}), settings)
            head.start_from(saved)
        if self.objective == "ratings":
            examples = [
                [Example(candidate.strip(), texts, context.strip()) for candidate, texts, context in one.rows]
                for one in sets
            ]
            head.fit(sets, examples)
            return head.save(folder)
        if not sources:
            raise ValueError("there are no texts to learn from; name a file of them")
        if self.objective == "contrastive":
            fit_contrast(head, sources)
        else:
            self._pretrain(head, sources, settings, runtime)
        return head.save(folder)

    def _pretrain(
        self, head: EncoderHead, sources: Sequence[Source], settings: Settings, runtime: Runtime
    ) -> None:
        """On pairs and signals; what models computed for them is kept in the store."""

        def load(spec: str, kind: str) -> Model:
            return load_language_model(spec, kind, settings.models.dtype, runtime)

        check_names("signal", self.weights, (*SIGNALS, DAMAGE))
        trip = None
        if self.translators:
            there, back = (load(spec, "translation") for spec in self.translators)
            trip = RoundTrip(there, back, runtime.batch_size)
        entailment = load(self.entailment, "classification") if self.entailment else None
        back_translate = trip.back_translate if trip else None
        seed = self.training.seed
        by = infillers(settings, runtime)
        pairs = make_pairs(sources, self.pairs, seed, by, back_translate, self.share)
        unwanted = [name for name, weight in self.weights.items() if not weight]
        signals = read_signals(pairs, settings, runtime, trip, entailment, unwanted, self.share, seed)
        pretrain(head, pairs, signals, self.weights)
