"""The results of chunks as bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import astuple
from typing import Any

from mars_score.augment.augmented import Augmented
from mars_score.scoring.embeddings import Embedding
from mars_score.scoring.evidence import EMBED, LIKELIHOOD, MATCH
from mars_score.scoring.likelihood import Likelihood
from mars_score.scoring.rows import plain_reference, reference_of

_LENGTH = struct.Struct("<I")


def encode_augmented(one: Augmented) -> bytes:
    """An augmented reference as bytes."""
    flags = one.context_cut, one.reference_cut, one.untagged
    return json.dumps([*plain_reference(one.reference), *flags]).encode()


def decode_augmented(encoded: bytes) -> Augmented:
    """The inverse of :func:`encode_augmented`."""
    reference, augmentations, *flags = json.loads(encoded)
    return Augmented(reference_of((reference, augmentations)), *flags)


def encode_evidence(evidence: Any) -> bytes:
    """What was read of an item as bytes."""
    if isinstance(evidence, Embedding):
        return evidence.packed
    return json.dumps(astuple(evidence) if isinstance(evidence, Likelihood) else evidence).encode()


def decode_evidence(kind: str, encoded: bytes) -> Any:
    """The inverse of :func:`encode_evidence`."""
    if kind in (EMBED, MATCH):
        return Embedding(encoded, with_tokens=kind == MATCH)
    return Likelihood(*json.loads(encoded)) if kind == LIKELIHOOD else json.loads(encoded)


def join(rows: Iterable[bytes]) -> bytes:
    """The encoded scores of some rows as one result."""
    return b"".join(_LENGTH.pack(len(row)) + row for row in rows)


def split(joined: bytes) -> list[bytes]:
    """The inverse of :func:`join`."""
    rows, start = [], 0
    while start < len(joined):
        end = start + _LENGTH.size + _LENGTH.unpack_from(joined, start)[0]
        rows.append(joined[start + _LENGTH.size : end])
        start = end
    return rows
