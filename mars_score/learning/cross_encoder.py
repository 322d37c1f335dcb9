"""A pre-trained encoder that reads reference, candidate and context as one sequence."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mars_score.errors import UnsupportedModelError
from mars_score.meta.metrics.tokens import Transformer
from mars_score.models.torch_modes import ordinary_mode

Segments = tuple[str, str, str]  # reference, candidate, parts of the context; each may be blank
TEXT_TOKENS = 96  # read of a reference, and of a candidate
ALL_TOKENS = 256  # of a sequence; the context gets what is left
READ_TOGETHER = 8  # sequences
# First weights of a layer: none for the mean of all token vectors, twice the cosine of reference and candidate,
# once that of candidate and context.
CENTRED = 128  # rows that say by how much a layer's output is shifted
START = (0.0, 2.0, 1.0)


class CrossEncoder(torch.nn.Module):
    """A copy of an encoder's transformer, in single precision, and linear layers on its pooled output.

    Args:
        encoder: a ``SentenceTransformer``.
        outputs: size of each layer's output by its name.

    Raises:
        ModelUnavailableError: the encoder has no transformer.
        UnsupportedModelError: its tokenizer has no separator.
    """

    def __init__(self, encoder: Any, outputs: Mapping[str, int]) -> None:
        super().__init__()
        inner = Transformer.of(encoder)
        self._tokenizer, self._window = inner.tokenizer, min(inner.window, ALL_TOKENS)
        self._begin, self._separator = inner.tokenizer.cls_token_id, inner.tokenizer.sep_token_id
        if self._begin is None or self._separator is None:
            raise UnsupportedModelError(
                f"the tokenizer of {type(inner.model).__name__} has no separator between texts, which a trained "
                "encoder needs; choose another encoder"
            )
        self.transformer = copy.deepcopy(inner.model).float().requires_grad_(True)
        self.transformer.get_input_embeddings().requires_grad_(False)
        self.layers = torch.nn.ModuleDict()
        self._add(outputs)

    def forward(self, rows: Sequence[Segments]) -> dict[str, Tensor]:
        """What each layer makes of each row: (rows, size of the output)."""
        pooled = self.pooled(rows)
        return {name: layer(pooled) for name, layer in self.layers.items()}

    def pooled(self, rows: Sequence[Segments]) -> Tensor:
        """What the layers see of each row, (rows, 3 x dimensions).

        The mean of all token vectors, and two products of segments' mean vectors (of length 1): of reference and
        candidate, and of candidate and context; 0 where one of them is blank. Summed up, a product is a cosine,
        which sentence encoders were trained for.
        """
        cut = [self._cut(one) for one in self._ids(rows)]
        pooled = []
        for states, segments in zip(self.read([self._sequence(one) for one in cut]), cut, strict=True):
            reference, candidate, context = (
                torch.nn.functional.normalize(part.sum(0), dim=-1)
                for part in _segments(states, list(map(len, segments)))
            )
            products = torch.cat([reference * candidate, candidate * context]) * states.shape[1]
            pooled.append(torch.cat([states.mean(0), products]))
        return torch.stack(pooled)

    def read(self, sequences: Sequence[tuple[list[int], list[int]]]) -> list[Tensor]:
        """Last hidden states of each sequence, (tokens, dimensions).

        Sequences of similar lengths are read together, a few at a time on a CPU, where padding costs as much as
        text.
        """
        together = READ_TOGETHER if self.transformer.device.type == "cpu" else len(sequences)
        order = sorted(range(len(sequences)), key=lambda index: len(sequences[index][0]))
        found: dict[int, Tensor] = {}
        for start in range(0, len(order), together):
            part = order[start : start + together]
            found.update(zip(part, self._read_padded([sequences[index] for index in part]), strict=True))
        return [found[index] for index in range(len(sequences))]

    def _read_padded(self, sequences: Sequence[tuple[list[int], list[int]]]) -> list[Tensor]:
        device, longest = self.transformer.device, max(len(ids) for ids, _ in sequences)
        padding = self._tokenizer.pad_token_id or 0
        ids = torch.tensor([[*one, *[padding] * (longest - len(one))] for one, _ in sequences], device=device)
        types = torch.tensor([[*one, *[0] * (longest - len(one))] for _, one in sequences], device=device)
        lengths = torch.tensor([len(one) for one, _ in sequences], device=device)
        mask = (torch.arange(longest, device=device) < lengths[:, None]).long()
        of_types = {"token_type_ids": types} if getattr(self.transformer.config, "type_vocab_size", 0) > 1 else {}
        states = self.transformer(input_ids=ids, attention_mask=mask, **of_types).last_hidden_state
        return [of_one[: len(one)] for of_one, (one, _) in zip(states, sequences, strict=True)]

    def _ids(self, rows: Sequence[Segments]) -> Iterator[list[list[int]]]:
        """Token ids of each segment of each row, without special tokens."""
        flat = self.token_ids([text for row in rows for text in row])
        return (flat[start : start + 3] for start in range(0, len(flat), 3))

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""
        return list(
            self._tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
        )

    def _cut(self, segments: list[list[int]]) -> list[list[int]]:
        """As much of reference, candidate and context as is read."""
        reference, candidate, context = segments
        most = min(TEXT_TOKENS, (self._window - 4) // 2)
        reference, candidate = reference[:most], candidate[:most]
        return [reference, candidate, context[: self._window - 4 - len(reference) - len(candidate)]]

    def _sequence(self, segments: list[list[int]]) -> tuple[list[int], list[int]]:
        """Token ids and types: begin, reference, separator, candidate, separator, context, separator."""
        reference, candidate, context = segments
        end = self._separator
        ids = [self._begin, *reference, end, *candidate, end, *context, end]
        types = [0] * (len(reference) + 2) + [1] * (len(candidate) + 1) + [0] * (len(context) + 1)
        return ids, types

    def begin_and_end(self, ids: list[int]) -> list[int]:
        """The sequence of a single text, as much of it as is read."""
        return [self._begin, *ids[: self._window - 2], self._separator]

    def centre(self, rows: Sequence[Segments]) -> None:
        """Let the mean of each layer's outputs over some of the rows be 0, as that of standardised targets is.

        Else the transformer would be changed most to shift what the layers make of it.
        """
        some = rows[:: math.ceil(len(rows) / CENTRED)]
        self.eval()
        with torch.no_grad():
            for name, values in self(some).items():
                self.layers[name].bias -= values.mean(0)

    @contextmanager
    def more_layers(self, outputs: Mapping[str, int]) -> Iterator[None]:
        """Within, the network has further layers."""
        self._add(outputs)
        try:
            yield
        finally:
            for name in outputs:
                del self.layers[name]

    def _add(self, outputs: Mapping[str, int]) -> None:
        with ordinary_mode(grad=True):
            for name, size in outputs.items():
                self.layers[name] = self.make_layer(size).to(self.transformer.device)

    def make_layer(self, size: int) -> torch.nn.Linear:
        """A linear layer on the pooled output, which starts as a weighted sum of the two cosines."""
        dimensions = self.transformer.config.hidden_size
        layer = torch.nn.Linear(len(START) * dimensions, size)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(START).repeat_interleave(dimensions) / dimensions)
            layer.bias.zero_()
        return layer

    def trained(self) -> dict[str, np.ndarray[Any, Any]]:
        """The weights that differ from the encoder's own, by name."""
        found = {name: one for name, one in self.named_parameters() if one.requires_grad}
        return {name: one.detach().cpu().numpy() for name, one in found.items()}

    def take(self, arrays: Mapping[str, np.ndarray[Any, Any]], where: object) -> None:
        """Take over weights that ``trained`` gave; layers that were not saved keep theirs.

        Raises:
            ValueError: weights of another network; names ``where`` they are from.
        """
        own = {name: one for name, one in self.named_parameters() if one.requires_grad}
        for name, parameter in own.items():
            if name not in arrays and name.startswith("layers."):
                continue
            if name not in arrays or arrays[name].shape != tuple(parameter.shape):
                raise ValueError(
                    f"{where}: the weights of {name} are missing or of another size; it was trained with another "
                    "encoder, or by another version"
                )
            parameter.data.copy_(torch.from_numpy(np.array(arrays[name])))


def _segments(states: Tensor, lengths: Sequence[int]) -> Iterator[Tensor]:
    """The token vectors of each segment, which begin after one special token each, (tokens, dimensions)."""
    start = 1
    for length in lengths:
        yield states[start : start + length]
        start += length + 1
