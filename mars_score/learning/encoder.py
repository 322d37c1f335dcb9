"""The head ``"encoder"``: BLEURT's cross-encoder (Sellam et al. 2020, https://aclanthology.org/2020.acl-main.704).

The preset's encoder reads reference, candidate and the nearest parts of the context as one sequence; a linear
layer on the means of its token vectors gives the score. Word embeddings stay as they are: they are half of a small
encoder, and few ratings cannot say much about single words.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from mars_score.data.overlap import windows
from mars_score.learning.cross_encoder import CrossEncoder
from mars_score.learning.losses import ranking_loss, same
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.training import (
    RATE_OF_RATINGS,
    RATE_OF_TEXTS,
    Examples,
    Loss,
    Trainer,
    TrainingSettings,
    is_held_out,
)
from mars_score.models.fingerprints import fingerprint
from mars_score.models.loading import load_encoder
from mars_score.models.torch_modes import exclusive, ordinary_mode
from mars_score.scoring.evidence import EMBED, Reader
from mars_score.scoring.head_folder import HeadFolder, write_head
from mars_score.scoring.heads import Example, learned_from
from mars_score.scoring.result import Term
from mars_score.settings import Settings
from mars_score.store.results import digest
from mars_score.store.runtime import Runtime

NEAREST_WINDOWS = 2
RATING = "rating"  # the layer that gives the score


@contextmanager
def no_training(network: torch.nn.Module) -> Iterator[None]:
    """Without dropout and gradients, for this thread alone."""
    with exclusive(network), ordinary_mode():
        yield


class EncoderHead:
    """A cross-encoder that is trained on ratings; of several references the best counts, as in BLEURT.

    In training each row shows one of its references, drawn anew in each epoch.

    Args:
        settings: name the encoder.
        runtime: device, batch size and store.
        training: how long and how fast it learns.
        loss: "regression": squared error of standardised ratings; "pairwise": logistic loss of the order of two
            candidates of a set (of a group, where ratings compare within a group only).
        checkpoints: folder in which an interrupted training goes on; None: it starts again.

    Raises:
        ModelUnavailableError, UnsupportedModelError: see :class:`CrossEncoder`.
    """

    kind: ClassVar[str] = "encoder"
    # Of the score that the head replaces: the cheapest, as it has no part in the head's.
    form: ClassVar[dict[str, Any]] = {"variant": "fast"}

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        training: TrainingSettings | None = None,
        loss: Literal["regression", "pairwise"] = "regression",
        checkpoints: Path | None = None,
    ) -> None:
        self.training, self.loss, self.checkpoints = training or TrainingSettings(), loss, checkpoints
        self.trained_with, self.fingerprint = self.training, ""
        self._settings, self._runtime = settings, runtime
        self._reader = Reader(settings, runtime)
        self.learned_from: list[Any] = []
        models = settings.models
        self.network = self.make_network(load_encoder(models.encoder, models.dtype, runtime))

    def make_network(self, encoder: Any) -> CrossEncoder:
        """The network before training."""
        return CrossEncoder(encoder, {RATING: 1})

    @property
    def batch_size(self) -> int:
        """Rows per forward pass when scoring."""
        return self._runtime.encoder_batch_size or 32

    def nearest(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Of each candidate's context the windows that are nearest to the candidate, nearest first, as one text.

        The cosine of the encoder as it was before training decides; it is asked only where a context has more than
        :data:`NEAREST_WINDOWS` windows.
        """
        parts = {context: windows(context) for _, context in pairs}
        long = [pair for pair in pairs if len(parts[pair[1]]) > NEAREST_WINDOWS]
        vectors = self._reader.read(
            EMBED, [text for candidate, context in long for text in (candidate, *parts[context])]
        )
        found = []
        for candidate, context in pairs:
            order = parts[context]
            if len(order) > NEAREST_WINDOWS:
                own = vectors[candidate].vector
                order = sorted(order, key=lambda part: -float(vectors[part].vector @ own))[:NEAREST_WINDOWS]
            found.append(" ".join(order))
        return found

    def scores(self, texts: Sequence[str], contexts: Sequence[str]) -> Tensor:
        """What the network makes of texts without references, (texts,)."""
        scores: Tensor = self.network([("", *one) for one in zip(texts, contexts, strict=True)])[RATING][:, 0]
        return scores

    def start_from(self, saved: HeadFolder) -> Self:
        """Take over a saved head's weights, such as those of pre-training; returns the head itself."""
        self.network.take(saved.arrays, saved.path)
        self.learned_from = list(saved.about.get("learned_from", []))
        return self

    def fit(self, sets: Sequence[TrainingSet], examples: Sequence[Sequence[Example]]) -> Self:
        """Learn from ratings; see :class:`mars_score.scoring.heads.LearnedHead`.

        A tenth of the groups of each set is held out to decide when to stop.
        """
        rows = [one for of_set in examples for one in of_set]
        names = [(one.name, group) for one in sets for group in one.groups]
        alone = {one.name for one in sets if one.within_groups}
        pools = [f"{name} {group}" if name in alone else name for name, group in names]
        targets = torch.tensor(np.concatenate([one.ratings for one in sets]), dtype=torch.float32)
        contexts = self.nearest([(one.candidate, one.context) for one in rows])

        def loss(batch: Sequence[int]) -> Tensor:
            segments = [(self._one_reference(rows[i]), rows[i].candidate, contexts[i]) for i in batch]
            scores = self.network(segments)[RATING][:, 0]
            wanted = targets[list(batch)].to(scores.device)
            if self.loss == "pairwise":
                return ranking_loss(scores, wanted, same([pools[i] for i in batch]))
            return torch.nn.functional.mse_loss(scores, wanted)

        held_out = [is_held_out(f"{name} {group}") for name, group in names]
        lengths = [len(one.candidate) + len(context) for one, context in zip(rows, contexts, strict=True)]
        key = digest(self.loss, [(one.candidate, one.references, one.context) for one in rows], targets.tolist())
        first = [(one.references or ("",))[0] for one in rows]
        self.network.centre([(first[i], rows[i].candidate, contexts[i]) for i in range(len(rows))])
        self.run_training(loss, Examples.split(pools, lengths, held_out), key.hex(), RATE_OF_RATINGS)
        self.learned_from += learned_from(sets)
        return self

    def run_training(self, loss: Loss, examples: Examples, key: str, rate: float = RATE_OF_TEXTS) -> None:
        """Train the network, from the checkpoint where there is one.

        Args:
            loss: computed with the network.
            examples: that ``loss`` knows by their indices.
            key: what the training depends on besides models, settings and the weights it starts from.
            rate: of learning, where ``training`` names none.
        """
        start = hashlib.blake2b(b"".join(one.tobytes() for one in self.network.trained().values()), digest_size=8)
        models = fingerprint(self._settings.models.encoder)
        key, progress = f"{key} {start.hexdigest()} {models}", self._runtime.progress
        trainer = Trainer(self.network, loss, examples, self.training, rate, self.checkpoints, key, progress)
        trainer.train()
        self.trained_with = trainer.settings

    def _one_reference(self, example: Example) -> str:
        """One by lot in training, the first otherwise; blank where there is none."""
        if not example.references:
            return ""
        drawn = int(torch.randint(len(example.references), ())) if self.network.training else 0
        return example.references[drawn]

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """One term, "encoder": 0.5 for a candidate of average quality, 0.25 more per standard deviation."""
        contexts = self.nearest([(one.candidate, one.context) for one in examples])
        rows = [
            (index, (reference, one.candidate, context))
            for index, (one, context) in enumerate(zip(examples, contexts, strict=True))
            for reference in one.references or ("",)
        ]
        rows.sort(key=lambda row: sum(map(len, row[1])))
        best = [-np.inf] * len(examples)
        with no_training(self.network):
            for start in range(0, len(rows), self.batch_size):
                part = rows[start : start + self.batch_size]
                found = self.network([segments for _, segments in part])[RATING][:, 0]
                for (index, _), value in zip(part, found.tolist(), strict=True):
                    best[index] = max(best[index], value)
        return [(Term("encoder", 0.5 + value / 4, 1.0),) for value in best]

    def save(self, folder: str | os.PathLike[str]) -> HeadFolder:
        """See :class:`mars_score.scoring.heads.LearnedHead`."""
        saved = write_head(
            folder,
            self.kind,
            models={"encoder": str(fingerprint(self._settings.models.encoder))},
            settings=self.form,
            parameters={"training": vars(self.trained_with), "loss": self.loss},
            arrays=self.network.trained(),
            learned_from=self.learned_from,
        )
        self.fingerprint = saved.fingerprint
        return saved

    @classmethod
    def load(cls, saved: HeadFolder, settings: Settings, runtime: Runtime) -> Self:
        """See :class:`mars_score.scoring.heads.LearnedHead`."""
        head = cls(settings, runtime).start_from(saved)
        head.fingerprint = saved.fingerprint
        return head
