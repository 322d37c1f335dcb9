"""Rows of texts as two tensors, bytes and lengths, which any process group can gather and concatenate."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from mars_score.data.validation import Row


def to_tensors(rows: Iterable[Row], device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """Bytes (uint8) and lengths (int64) of rows; the tensors of several calls can be concatenated.

    The bytes of a row are those of candidate, context and references in UTF-8, one after the other; its lengths
    are the number of references and the number of bytes of each text.
    """
    data, lengths = bytearray(), []
    for candidate, references, context in rows:
        texts = [text.encode() for text in (candidate, context, *references)]
        lengths += [len(references), *map(len, texts)]
        data += b"".join(texts)
    return (
        torch.frombuffer(data, dtype=torch.uint8).to(device) if data else empty(device)[0],
        torch.tensor(lengths, dtype=torch.int64, device=device),
    )


def empty(device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """The tensors of no rows."""
    return torch.empty(0, dtype=torch.uint8, device=device), torch.empty(0, dtype=torch.int64, device=device)


def from_tensors(data: Sequence[Tensor], lengths: Sequence[Tensor]) -> list[Row]:
    """The rows of tensors of :func:`to_tensors`, in order."""
    stream = io.BytesIO(b"".join(tensor.cpu().numpy().tobytes() for tensor in data))
    numbers = iter([length for tensor in lengths for length in tensor.tolist()])
    rows: list[Row] = []
    for references in numbers:
        texts = [stream.read(next(numbers)).decode() for _ in range(references + 2)]
        rows.append((texts[0], tuple(texts[2:]), texts[1]))
    return rows
