"""Baselines that use models: cosine with the context, perplexity, and the paper's MARS with a masked LM."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from mars_score.errors import ModelUnavailableError, UnsupportedModelError
from mars_score.infilling.jobs import FilledTemplate, TemplateInContext
from mars_score.infilling.plain import allowed_tokens, cut_context, decode, encode, encode_pieces, fit, is_whole
from mars_score.meta.metrics.base import MarsVariant, Metric, Models
from mars_score.metrics.plus import PlusConfig
from mars_score.models.loading import no_bars
from mars_score.models.running import ordinary_mode, pick_device, position_limit
from mars_score.text import as_prose

if TYPE_CHECKING:
    from mars_score.metrics.paper import PaperConfig, Template
    from mars_score.rows import Row

_WINDOW = 512  # tokens, if the model does not say how many it takes


class ContextCosine(Metric):
    """Cosine of the candidate with its context; 0 if the context is blank."""

    title = "cosine with context (cut)"
    note = "the context is one text; the encoder is given the beginning that fits its window"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the cosines of sentence vectors."""
        pairs = [(row.candidate, as_prose(row.prompt)) for row in rows]
        encodings = self.models.calls.encode([text for pair in pairs if pair[1].strip() for text in pair])
        return [
            float(encodings[candidate].vector @ encodings[context].vector) if context.strip() else 0.0
            for candidate, context in pairs
        ]


class Perplexity(Metric):
    """Minus the perplexity of a candidate's tokens after begin-of-text, -exp(-mean log probability)."""

    title = "-perplexity"
    note = "under the preset's language model after begin-of-text alone; at least minus the size of the vocabulary"
    kind: ClassVar[str] = "alone"  # field of the log probability

    @cached_property
    def minimum(self) -> float:  # type: ignore[override]
        """The perplexity of a uniform guess."""
        return -float(self.models.calls.language_model().vocabulary)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the perplexities."""
        pairs = [(row.prompt, row.candidate) for row in rows]
        # The limit is that of variant "plus", so that its log probabilities come from the cache.
        log_p = self.models.calls.log_probability(pairs, PlusConfig().max_context_tokens)
        return [-math.exp(-getattr(log_p[pair], self.kind)) for pair in pairs]


class ContextPerplexity(Perplexity):
    """Minus the perplexity of a candidate's tokens after the context and a space."""

    title = "-perplexity given context"
    note = (
        "under the preset's language model given the context and a space; the context is cut from its end to "
        f"{PlusConfig().max_context_tokens} tokens, or to what the window leaves; at least minus the size of the "
        "vocabulary"
    )
    kind = "given_context"


class Naive(Metric):
    """MARS, variant ``paper``, with blanks filled by a masked language model, one token per masked token.

    Args:
        models: shared by all metrics, with the encoder and the settings of ``paper``.
        name: Hub id or folder of a model that ``AutoModelForMaskedLM`` loads, with a byte-level tokenizer.
    """

    note = "MARS whose blanks a masked language model fills, all tokens of a template at once"

    def __init__(self, models: Models, name: str) -> None:
        super().__init__(models)
        self.title = f"Naive (MLM), {name}"
        self._name = name
        self._mars = MarsVariant(models, self.title, "variant=paper,planner=none")

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the scores of rows."""
        scorer = self._mars.scorer(corpus)
        scorer.calls.infiller = MaskedInfills(self._name, scorer.runtime.device)
        return self._mars.result(rows, corpus, scorer).scores


class MaskedInfills:
    """Fills blanks by a masked language model; see :attr:`mars_score.models.calls.ModelCalls.infiller`.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
        UnsupportedModelError: its tokenizer loses white space, as it is not byte-level.
    """

    def __init__(self, name: str, device: str | None = None) -> None:
        import transformers

        try:
            with no_bars(), ordinary_mode():
                model = transformers.AutoModelForMaskedLM.from_pretrained(name).eval()
                self._tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        except (OSError, ValueError) as error:
            fault = str(error).strip().splitlines()[0]
            raise ModelUnavailableError(f"could not load the masked language model {name!r} ({fault})") from error
        if decode(self._tokenizer, encode(self._tokenizer, " a")) != " a":
            raise UnsupportedModelError(
                f"the tokenizer of {name!r} loses white space; name a model with a byte-level one, as RoBERTa's"
            )
        self._model: Any = model.to(pick_device(device))

    def __call__(
        self, pairs: Sequence[TemplateInContext], config: PaperConfig
    ) -> Iterator[tuple[TemplateInContext, FilledTemplate]]:
        """Yield each different (context, template) with the filled template."""
        for pair in pairs:
            yield pair, self._fill(*pair, config)

    def _fill(self, context: str, template: Template, config: PaperConfig) -> FilledTemplate:
        tokenizer = self._tokenizer
        window = (position_limit(self._model) or _WINDOW) - 1  # One position is for the closing token.
        context_ids, context_cut = cut_context(context, template.reference, window, tokenizer, config)
        before = [tokenizer.cls_token_id, *context_ids]
        pieces = fit(
            encode_pieces(template, tokenizer, after_context=bool(context_ids)), window - len(before), extra=0
        )
        ids = [tokenizer.mask_token_id if piece.is_blank else token for piece in pieces for token in piece.ids]
        inputs = torch.tensor([[*before, *ids, tokenizer.sep_token_id]], device=self._model.device)
        with ordinary_mode():
            logits = self._model(input_ids=inputs).logits[0]
        infills, position = [], len(before)
        for piece in pieces:
            if piece.is_blank:
                masks = logits[position : position + len(piece.ids)].cpu()
                infills.append(self._most_likely(masks, piece.text, template.reference))
            position += len(piece.ids)
        cut = len(infills) < len(template.blanks)
        return FilledTemplate(template.fill(infills).strip(), context_cut, reference_cut=cut)

    def _most_likely(self, logits: torch.Tensor, masked: str, reference: str) -> str:
        """Choose the most likely token for each mask, only among those of whole characters if need be."""
        text = ""
        for whole in (False, True):
            chosen = []
            for index, scores in enumerate(logits):
                opening = None if index else masked
                allowed = allowed_tokens(self._tokenizer, len(scores), reference, opening, whole=whole)
                chosen.append(int(scores.masked_fill(~allowed, -math.inf).argmax()))
            text = decode(self._tokenizer, chosen)
            if is_whole(text):
                break
        return text
