"""What is to be done for a run, in chunks: each different reference and text once, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mars_score.augmentation import Augmented
from mars_score.runs.input import Input, Part
from mars_score.runs.records import Distinct, Records
from mars_score.runs.survey import item_key
from mars_score.runs.worker import AUGMENT, Chunk, unpack
from mars_score.settings import SimilaritySettings
from mars_score.similarity.batch import Scorable


def augment_chunks(rows: Input, size: int, done: set[int]) -> Iterator[Chunk]:
    """The different pairs of contexts and references, in the order in which they first occur.

    Args:
        rows: the input.
        size: pairs a chunk.
        done: numbers of the chunks to leave out.
    """
    pairs = ({item_key(pair): pair for row in part.wanted_pairs for pair in row} for part in rows.parts())
    return _chunks(AUGMENT, pairs, size, done)


def reading_chunks(
    kind: str, rows: Input, records: Records, settings: SimilaritySettings, size: int, done: set[int]
) -> Iterator[Chunk]:
    """What must be read of one kind, each different item once, in the order in which they first occur.

    Args:
        kind: see :mod:`mars_score.similarity.features`.
        rows: the input; its references have been augmented.
        records: of the run.
        settings: how rows are scored.
        size: items a chunk.
        done: numbers of the chunks to leave out.
    """
    items = (
        {item_key(item): item for item in scorable(part, augmented_of(part, records), settings).needs[kind]}
        for part in rows.parts()
    )
    return _chunks(kind, items, size, done)


def scorable(part: Part, augmented: Sequence[Sequence[Augmented]], settings: SimilaritySettings) -> Scorable:
    """The rows of a part."""
    return Scorable(part.candidates, part.contexts, augmented, settings)


def augmented_of(part: Part, records: Records) -> list[list[Augmented]]:
    """The augmented references of each row; none where they are not wanted."""
    pairs = part.wanted_pairs
    keys = {pair: item_key(pair) for row in pairs for pair in row}
    packed = records.get(AUGMENT, list(keys.values()))
    augmented = {pair: unpack(packed[key]) for pair, key in keys.items()}
    return [[augmented[pair] for pair in row] for row in pairs]


def _chunks(stage: str, batches: Iterable[dict[bytes, Any]], size: int, done: set[int]) -> Iterator[Chunk]:
    """New items of each batch (key to item), cut into chunks that do not depend on what is done."""
    distinct = Distinct()
    number, items = 0, list[Any]()
    try:
        for batch in batches:
            items += [batch[key] for key in distinct.new(list(batch))]
            while len(items) >= size:
                if number not in done:
                    yield Chunk(stage, number, tuple(items[:size]))
                number, items = number + 1, items[size:]
        if items and number not in done:
            yield Chunk(stage, number, tuple(items))
    finally:
        distinct.close()
