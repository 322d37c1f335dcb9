"""The paper's baseline "Naive (MLM)": MARS with blanks filled by a masked language model.

It is a metric like others: ``Naive(Models(preset="base"), "FacebookAI/roberta-base")``. It has been tried only
with tiny models, so our tables lack its row.
"""

import math
from collections.abc import Iterable, Sequence
from unittest.mock import patch

import torch
import transformers

from mars_score.errors import ModelUnavailableError, UnsupportedModelError
from mars_score.infilling.jobs import FilledTemplate, TemplateInContext, make_job
from mars_score.meta.metrics import MarsVariant, Metric, Models
from mars_score.metrics.paper import PaperConfig, Template
from mars_score.models.calls import ModelCalls
from mars_score.models.codec import TextCodec, token_kind
from mars_score.models.loading import no_bars
from mars_score.models.running import ordinary_mode, pick_device, position_limit
from mars_score.rows import Row
from mars_score.variants import paper_variant

_WINDOW = 512  # tokens, if the model has no limit of its own


class Naive(Metric):
    """MARS, variant ``paper``, with blanks filled by a masked language model, one token per masked token.

    Args:
        models: models of all metrics, with the encoder and the settings of ``paper``.
        name: Hub id or folder of a model for ``AutoModelForMaskedLM`` with a byte-level tokenizer.
    """

    note = "MARS whose blanks a masked language model fills, all tokens of a template at once"

    def __init__(self, models: Models, name: str) -> None:
        super().__init__(models)
        self.title = f"Naive (MLM), {name}"
        self._name = name
        self._mars = MarsVariant(models, self.title, "variant=paper,planner=none")

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the scores of rows."""
        with patch.object(paper_variant, "infill", MaskedInfills(self._name, self.models.runtime.device)):
            return self._mars.score(rows, corpus)


class MaskedInfills:
    """Replaces :func:`mars_score.variants.paper_variant.infill`, without a store.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
        UnsupportedModelError: its tokenizer is not byte-level and loses white space.
    """

    def __init__(self, name: str, device: str | None = None) -> None:
        try:
            with no_bars(), ordinary_mode():
                model = transformers.AutoModelForMaskedLM.from_pretrained(name).eval()
                tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        except (OSError, ValueError) as error:
            fault = str(error).strip().splitlines()[0]
            raise ModelUnavailableError(f"could not load the masked language model {name!r} ({fault})") from error
        self._codec = TextCodec(tokenizer)
        if self._codec.decode(self._codec.encode(" a")) != " a":
            raise UnsupportedModelError(
                f"the tokenizer of {name!r} loses white space; name a model with a byte-level one, as RoBERTa's"
            )
        self._model = model.to(pick_device(device))
        self._allowed = torch.from_numpy(self._codec.allowed_tokens(model.config.vocab_size))

    def __call__(
        self, pairs: Iterable[TemplateInContext], config: PaperConfig, calls: ModelCalls
    ) -> dict[TemplateInContext, FilledTemplate]:
        """Fill the blanks of each different (context, template)."""
        return {pair: self._fill(*pair, config) for pair in dict.fromkeys(pairs)}

    def _fill(self, context: str, template: Template, config: PaperConfig) -> FilledTemplate:
        window = (position_limit(self._model) or _WINDOW) - 1  # one position is for the closing token
        job, context_cut = make_job(context, template, self._codec, window, config)
        tokenizer = self._codec.tokenizer
        ids = [*job.prompt, *job.lead]
        places = []
        for blank in job.blanks:
            places.append(slice(len(ids), len(ids) + blank.length))
            ids += [tokenizer.mask_token_id] * blank.length + [*blank.block]
        inputs = torch.tensor([[*ids, tokenizer.sep_token_id]], device=self._model.device)
        with ordinary_mode():
            logits = self._model(input_ids=inputs).logits[0].cpu()
        infills = [
            self._most_likely(logits[place], begins_word=blank.begins_word, line_breaks=job.line_breaks)
            for place, blank in zip(places, job.blanks, strict=True)
        ]
        cut = len(infills) < len(template.blanks)
        return FilledTemplate(template.fill(infills).strip(), context_cut, reference_cut=cut)

    def _most_likely(self, logits: torch.Tensor, *, begins_word: bool, line_breaks: bool) -> str:
        """Choose the most likely token for each mask, if necessary among tokens of whole characters."""
        for whole in (False, True):
            kinds = [
                token_kind(
                    first=not index, begins_word=begins_word, line_breaks=line_breaks, whole_characters=whole
                )
                for index in range(len(logits))
            ]
            chosen = logits.masked_fill(~self._allowed[kinds], -math.inf).argmax(-1).tolist()
            if self._codec.whole_prefixes(chosen)[-1]:
                break
        return self._codec.decode(chosen)
