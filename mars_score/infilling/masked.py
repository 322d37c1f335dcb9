"""The paper's naive baseline: a masked language model fills one mask token per masked token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mars_score.infilling.jobs import Done, Infill, Job
from mars_score.infilling.tokens import TextCodec, token_kind
from mars_score.models.torch_modes import evaluating, ordinary_mode

# These count positions from the padding token's id on.
_OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "data2vec-text")


class MaskedInfiller:
    """Fills all blanks of a job at once, each mask token with its likeliest token.

    Args:
        model: any ``...ForMaskedLM``; its weights are left as they are.
        tokenizer: its tokenizer, with a mask token.
        batch_size: jobs abreast.
    """

    sigma = 0  # a blank keeps its number of tokens
    shortest_start = 1

    def __init__(self, model: Any, tokenizer: Any, batch_size: int | None = None) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.codec = TextCodec(tokenizer)
        self.batch_size = batch_size or 32
        allowed = self.codec.allowed(model.get_output_embeddings().weight.shape[0])
        self._allowed = torch.from_numpy(allowed).to(model.device)

    @property
    def window(self) -> int:
        """Positions for the prompt and the reference; the end-of-text token's is taken off."""
        config = self.model.config
        offset = config.pad_token_id + 1 if config.model_type in _OFFSET_POSITIONS else 0
        return int(config.max_position_embeddings) - offset - 1

    def infill(self, jobs: Sequence[Job], done: Done | None = None) -> list[tuple[Infill, ...]]:
        """The infills of each job's blanks; equal jobs are infilled once, and reported as they are done."""
        different = sorted(dict.fromkeys(jobs), key=lambda job: -job.most_tokens(0))
        infills: dict[Job, tuple[Infill, ...]] = {}
        with evaluating(self.model), ordinary_mode():
            for start in range(0, len(different), self.batch_size):
                batch = different[start : start + self.batch_size]
                for job, of_job in zip(batch, self._infill_batch(batch), strict=True):
                    infills[job] = of_job
                    if done:
                        done(job, of_job)
        return [infills[job] for job in jobs]

    def _infill_batch(self, jobs: Sequence[Job]) -> list[tuple[Infill, ...]]:
        texts = [self._with_masks(job) for job in jobs]
        longest = max(map(len, texts))
        padding = self.tokenizer.pad_token_id
        tokens = torch.tensor(
            [[*text, *[padding] * (longest - len(text))] for text in texts], device=self.model.device
        )
        attended = torch.tensor(
            [[1] * len(text) + [0] * (longest - len(text)) for text in texts], device=self.model.device
        )
        logits = self.model(input_ids=tokens, attention_mask=attended).logits
        return [self._read_masks(job, tokens[row], logits[row]) for row, job in enumerate(jobs)]

    def _with_masks(self, job: Job) -> list[int]:
        mask = self.tokenizer.mask_token_id
        filled = [token for blank in job.blanks for token in [*[mask] * blank.length, *blank.after]]
        return [*job.prompt, *job.lead, *filled, self.tokenizer.sep_token_id]

    def _read_masks(self, job: Job, tokens: Tensor, logits: Tensor) -> tuple[Infill, ...]:
        kinds = [
            token_kind(first=place == 0, begins_word=blank.begins_word, line_breaks=job.line_breaks)
            for blank in job.blanks
            for place in range(blank.length)
        ]
        # The context may hold the mask token's text but never its id, so the masks are all ours.
        masked = logits[tokens == self.tokenizer.mask_token_id]
        allowed = self._allowed[torch.tensor(kinds, dtype=torch.long)]
        chosen = iter(masked.masked_fill(~allowed, -torch.inf).argmax(-1).tolist())
        return tuple(Infill(tuple(next(chosen) for _ in range(blank.length)), ()) for blank in job.blanks)
