"""BERTScore (Zhang et al. 2020) with the package ``bert-score`` and the preset's own encoder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Family, Metric
from mars_score.meta.metrics.extras import need
from mars_score.meta.metrics.tokens import Transformer, parts, texts_of
from mars_score.models.memory import BatchSize
from mars_score.models.torch_modes import exclusive, ordinary_mode


class BertScore(Metric):
    """F1 of greedily matched tokens, without IDF or rescaling, the best over the references.

    Tokenising, reading and matching are the package's. It is called for one pair at a time, because in its
    padded batches the best match of a token is at least 0 where a pair is padded, and may be below elsewhere.
    """

    title = "BERTScore"
    family: Family = "reference"
    note = (
        "bert-score's F1 on the preset's encoder, no IDF, not rescaled; last layer (the package has a tuned layer "
        "for models of its own list only); texts cut at the encoder's positions; best over the references"
    )
    minimum = 0.0  # what the package gives an empty candidate
    packages = (("bert_score", "bert-score"),)
    model = "encoder"

    @cached_property
    def _transformer(self) -> Transformer:
        return Transformer.of(self.models.encoder())

    @cached_property
    def _weights(self) -> dict[Any, float]:
        """Of token ids, as ``BERTScorer`` sets them without IDF."""
        tokenizer = self._transformer.tokenizer
        weights: dict[Any, float] = defaultdict(lambda: 1.0)
        return weights | {tokenizer.sep_token_id: 0.0, tokenizer.cls_token_id: 0.0}

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        utils = need("bert_score.utils")
        scores = [self.minimum] * len(rows)
        with ordinary_mode(), exclusive(self._transformer.model):
            for part in parts(rows):
                read = self._read(utils, texts_of(rows, part))
                for index in part:
                    candidate, references, _ = rows[index]
                    scores[index] = max(_match(utils, read[candidate], read[one])[2] for one in references)
        return scores

    def precision_recall_f1(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, float, float]]:
        """Of each candidate and reference; all of them are in memory together."""
        utils = need("bert_score.utils")
        with ordinary_mode(), exclusive(self._transformer.model):
            read = self._read(utils, list(dict.fromkeys(text for pair in pairs for text in pair)))
        return [_match(utils, read[candidate], read[reference]) for candidate, reference in pairs]

    def _read(self, utils: Any, texts: Sequence[str]) -> dict[str, tuple[Tensor, Tensor]]:
        """Token vectors, (tokens, dimensions), and token weights of each text, special tokens included."""
        model, tokenizer = self._transformer.model, self._transformer.tokenizer

        def read(batch: list[str]) -> list[tuple[Tensor, Tensor]]:
            vectors, mask, weights = utils.get_bert_embedding(
                batch, model, tokenizer, self._weights, device=model.device
            )
            counts = mask.sum(1).tolist()
            return [
                (vectors[row, :count].clone(), weights[row, :count].clone()) for row, count in enumerate(counts)
            ]

        size = BatchSize(self.models.runtime.encoder_batch_size or 32)
        return dict(zip(texts, size.map(read, texts, len), strict=True))


def _match(
    utils: Any, candidate: tuple[Tensor, Tensor], reference: tuple[Tensor, Tensor]
) -> tuple[float, float, float]:
    """Precision, recall and F1 of one pair; 0 if a text has none but special tokens."""
    if not (candidate[1].any() and reference[1].any()):
        return 0.0, 0.0, 0.0
    sides = []
    for vectors, weights in (reference, candidate):
        mask = torch.ones(1, len(vectors), dtype=torch.bool, device=vectors.device)
        sides += [vectors[None].clone(), mask, weights[None].clone()]  # it normalises them in place
    precision, recall, f1 = (float(one) for one in utils.greedy_cos_idf(*sides))
    return precision, recall, f1
