"""The paper's naive baseline: a masked language model fills one mask token per masked token."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from mars_score.augment.infilling.jobs import Blank, Infill, Job, OnInfilled
from mars_score.errors import UnsupportedModelError
from mars_score.models.engine.tokens import TextCodec, padded, token_kind
from mars_score.models.running import BatchSize, exclusive, ordinary_mode, position_limit


class MaskedInfiller:
    """Fills all blanks at once, each mask token with its most likely token, if these make whole characters."""

    sigma = 0  # a blank keeps its number of tokens
    shortest_start = 1

    def __init__(self, model: Any, tokenizer: Any, batch_size: int | None = None) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.codec = TextCodec(tokenizer)
        self._batch = BatchSize(batch_size or 32)
        allowed = self.codec.allowed(model.get_output_embeddings().weight.shape[0])
        self._allowed = torch.from_numpy(allowed).to(model.device)
        positions = position_limit(model)
        if positions is None:
            raise UnsupportedModelError(
                f"the configuration of {type(model).__name__} has no max_position_embeddings; choose another "
                "masked_language_model"
            )
        self.window = positions - 1  # the last one is that of the end-of-text token

    def infill(self, jobs: Iterable[Job], done: OnInfilled) -> None:
        """Call ``done`` with each different job and the infills of its blanks."""
        with exclusive(self.model), ordinary_mode():
            self._batch.map(self._infill, list(dict.fromkeys(jobs)), lambda job: job.most_tokens(0), done)

    def _infill(self, jobs: Sequence[Job]) -> list[tuple[Infill, ...]]:
        """One forward pass."""
        mask, end = self.tokenizer.mask_token_id, self.tokenizer.sep_token_id
        texts = []
        for job in jobs:
            filled = [token for blank in job.blanks for token in [*[mask] * blank.length, *blank.after]]
            texts.append([*job.prompt, *job.lead, *filled, end])
        tokens = torch.tensor(padded(texts, self.tokenizer.pad_token_id), device=self.model.device)
        attended = torch.tensor(padded([[1] * len(text) for text in texts], 0), device=self.model.device)
        logits = self.model(input_ids=tokens, attention_mask=attended).logits
        infills = []
        for job, row, of_row in zip(jobs, tokens, logits, strict=True):
            # A context with the mask token's text is encoded without its id, so all masks are those of blanks.
            of_blanks = torch.split(of_row[row == mask], [blank.length for blank in job.blanks])
            pairs = zip(job.blanks, of_blanks, strict=True)
            infills.append(tuple(Infill(self._fill(*pair, line_breaks=job.line_breaks), ()) for pair in pairs))
        return infills

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
