"""The paper's naive baseline: MARS with infills of a masked language model, such as RoBERTa."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from mars_score.errors import ModelUnavailableError, UnsupportedModelError
from mars_score.infilling.jobs import FilledTemplate, TemplateInContext
from mars_score.infilling.plain import allowed_tokens, cut_context, decode, encode, encode_pieces, fit, is_whole
from mars_score.meta.metrics.base import MarsVariant, Metric, Models
from mars_score.models.loading import no_bars
from mars_score.models.running import ordinary_mode, pick_device, position_limit

if TYPE_CHECKING:
    from mars_score.metrics.paper import PaperConfig, Template
    from mars_score.rows import Row

_WINDOW = 512  # tokens, where the model does not say how many it can take


class Naive(Metric):
    """MARS, variant `paper`, whose blanks a masked language model fills with as many tokens as were masked.

    Args:
        models: shared by all metrics; the encoder and the settings of `paper` are theirs.
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
        UnsupportedModelError: its tokenizer is not byte-level, so that it loses white space.
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
        """Yield each different (context, template) with its text."""
        for pair in pairs:
            yield pair, self._fill(*pair, config)

    def _fill(self, context: str, template: Template, config: PaperConfig) -> FilledTemplate:
        tokenizer = self._tokenizer
        window = (position_limit(self._model) or _WINDOW) - 1  # one position is the closing token's
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
                own_logits = logits[position : position + len(piece.ids)].cpu()
                infills.append(self._most_likely(own_logits, piece.text, template.reference))
            position += len(piece.ids)
        cut = len(infills) < len(template.blanks)
        return FilledTemplate(template.fill(infills).strip(), context_cut, reference_cut=cut)

    def _most_likely(self, logits: torch.Tensor, masked: str, reference: str) -> str:
        """Choose the most likely token for each mask; again among those of whole characters if they make none."""
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
