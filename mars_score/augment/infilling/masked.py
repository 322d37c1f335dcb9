"""The paper's naive baseline: a masked language model fills one mask token per masked token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mars_score.augment.infilling.jobs import Blank, Infill, Job, OnInfilled
from mars_score.models.engine.tokens import TextCodec, token_kind
from mars_score.models.memory import BatchSize
from mars_score.models.torch_modes import exclusive, ordinary_mode

# These count positions from the padding token's id on.
_OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "data2vec-text")


class MaskedInfiller:
    """Fills all blanks of a job at once, each mask token with its most likely token.

    A blank whose tokens are no whole characters together is filled with tokens that are so on their own.

    Args:
        model: any ``...ForMaskedLM``; its weights are not modified.
        tokenizer: its tokenizer, with a mask token.
        batch_size: largest number of jobs per forward pass; None: 32. Halved where memory runs out.
    """

    sigma = 0  # a blank keeps its number of tokens
    shortest_start = 1

    def __init__(self, model: Any, tokenizer: Any, batch_size: int | None = None) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.codec = TextCodec(tokenizer)
        self._batch = BatchSize(batch_size or 32)
        allowed = self.codec.allowed(model.get_output_embeddings().weight.shape[0])
        self._allowed = torch.from_numpy(allowed).to(model.device)

    @property
    def window(self) -> int:
        """Positions for the prompt and the reference; the end-of-text token's is taken off."""
        config = self.model.config
        offset = config.pad_token_id + 1 if config.model_type in _OFFSET_POSITIONS else 0
        return int(config.max_position_embeddings) - offset - 1

    def infill(self, jobs: Sequence[Job], done: OnInfilled | None = None) -> list[tuple[Infill, ...]]:
        """The infills of each job's blanks; equal jobs are infilled once.

        ``done`` is called with each different job and its infills when they are finished.
        """
        waiting = sorted(dict.fromkeys(jobs), key=lambda job: -job.most_tokens(0))
        infills: dict[Job, tuple[Infill, ...]] = {}
        with exclusive(self.model), ordinary_mode():
            while waiting:
                new = self._batch.run(partial(self._infill_first, waiting), len(waiting))
                batch, waiting = waiting[: len(new)], waiting[len(new) :]
                for job, of_job in zip(batch, new, strict=True):
                    infills[job] = of_job
                    if done:
                        done(job, of_job)
        return [infills[job] for job in jobs]

    def _infill_first(self, jobs: Sequence[Job], count: int) -> list[tuple[Infill, ...]]:
        jobs = jobs[:count]
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
        # A context with the mask token's text is encoded without its id, so all masks are those of blanks.
        masked = logits[tokens == self.tokenizer.mask_token_id]
        of_blanks = torch.split(masked, [blank.length for blank in job.blanks])
        return tuple(
            Infill(self._fill(blank, of_blank, line_breaks=job.line_breaks), ())
            for blank, of_blank in zip(job.blanks, of_blanks, strict=True)
        )

    def _fill(self, blank: Blank, logits: Tensor, *, line_breaks: bool) -> tuple[int, ...]:
        """The most likely tokens of a blank, from logits (length, vocabulary)."""
        for whole in (False, True):
            kinds = [
                token_kind(first=place == 0, begins_word=blank.begins_word, line_breaks=line_breaks, whole=whole)
                for place in range(blank.length)
            ]
            allowed = self._allowed[torch.tensor(kinds, dtype=torch.long)]
            chosen = tuple(logits.masked_fill(~allowed, -torch.inf).argmax(-1).tolist())
            if self.codec.complete(chosen)[-1]:
                break
        return chosen
