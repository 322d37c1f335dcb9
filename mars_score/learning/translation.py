"""Translation models in pairs: texts to another language and back, and how likely that makes another text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from mars_score.models.torch_modes import exclusive, ordinary_mode

_IGNORED = -100  # label of padding, as transformers has it
_MOST_TOKENS = 128  # of a translation

Model = tuple[Any, Any]  # model and tokenizer


class RoundTrip:
    """To another language and back, greedily decoded.

    Args:
        there: a model ``...ForConditionalGeneration`` (or Marian's) and its tokenizer.
        back: likewise.
        batch_size: texts per forward pass.
    """

    def __init__(self, there: Model, back: Model, batch_size: int | None = None) -> None:
        self._there, self._back, self._size = there, back, batch_size or 16

    def back_translate(self, texts: Sequence[str]) -> list[str]:
        """Each text after the round trip."""
        return self._translate(self._back, self._translate(self._there, texts))

    def likelihoods(self, texts: Sequence[str], others: Sequence[str]) -> list[float]:
        """For each text, the mean log probability of the tokens of another as its back-translation.

        P(other | text) is taken for P(other | the most likely translation of text), as in section 4.2.

        Returns:
            In nats, one each.
        """
        model, tokenizer = self._back
        pivots = self._translate(self._there, texts)
        found: list[float] = []
        with exclusive(model), ordinary_mode():
            for start in range(0, len(pivots), self._size):
                given = self._tokens(self._back, pivots[start : start + self._size])
                wanted = tokenizer(
                    text_target=list(others[start : start + self._size]),
                    padding=True,
                    truncation=True,
                    return_tensors="pt",
                ).to(model.device)
                labels = wanted["input_ids"].masked_fill(wanted["attention_mask"] == 0, _IGNORED)
                logits = model(**given, labels=labels).logits.float()
                losses = torch.nn.functional.cross_entropy(
                    logits.transpose(1, 2), labels, ignore_index=_IGNORED, reduction="none"
                )
                found += (-losses.sum(1) / (labels != _IGNORED).sum(1).clamp(min=1)).tolist()
        return found

    def _tokens(self, of: Model, texts: Sequence[str]) -> dict[str, Any]:
        model, tokenizer = of
        encoded = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt").to(model.device)
        return {name: encoded[name] for name in ("input_ids", "attention_mask")}

    def _translate(self, by: Model, texts: Sequence[str]) -> list[str]:
        model, tokenizer = by
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        found = [""] * len(texts)
        with exclusive(model), ordinary_mode():
            for start in range(0, len(order), self._size):
                part = order[start : start + self._size]
                tokens = self._tokens(by, [texts[index] for index in part])
                output = model.generate(**tokens, num_beams=1, do_sample=False, max_new_tokens=_MOST_TOKENS)
                for index, text in zip(
                    part, tokenizer.batch_decode(output, skip_special_tokens=True), strict=True
                ):
                    found[index] = text.strip()
        return found
