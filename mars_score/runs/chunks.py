"""The chunks of a run: cut by the input alone, whatever is done already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from mars_score.augment.augmented import Augmented
from mars_score.augment.sampling.samples import Samples, decode_samples, encode_samples
from mars_score.runs.encoding import decode_augmented
from mars_score.runs.input import Part
from mars_score.runs.records import Distinct, Records
from mars_score.runs.survey import item_key
from mars_score.runs.worker import AUGMENT, FEATURES, SAMPLE, SCORE, Chunk, Feature
from mars_score.scoring.batch import Scorable
from mars_score.scoring.form import Form
from mars_score.settings import SamplingSettings, Settings

_NO_SAMPLES = encode_samples(Samples(()))


def augment_chunks(parts: Iterable[Part], size: int, done: set[int]) -> Iterator[Chunk]:
    """The different pairs of context and reference, in the order in which they first occur.

    Args:
        parts: the rows that are to be scored.
        size: pairs per chunk.
        done: numbers of the chunks to leave out.
    """
    pairs = ({item_key(pair): pair for row in part.wanted_pairs for pair in row} for part in parts)
    return _chunks(AUGMENT, pairs, size, done)


def sample_chunks(parts: Iterable[Part], settings: SamplingSettings, size: int, done: set[int]) -> Iterator[Chunk]:
    """The different requests for samples, in the order in which they first occur; arguments as above."""
    requests = (
        {item_key(one): one for one, want in zip(part.requests(settings), part.wanted, strict=True) if want}
        for part in parts
    )
    return _chunks(SAMPLE, requests, size, done)


def feature_chunks(
    parts: Iterable[Part], records: Records, settings: Settings, size: int, done: set[int]
) -> Iterator[Chunk]:
    """The different features that several chunks of rows share; each is computed once, here.

    Args:
        parts: the rows that are to be scored, a chunk's at a time; their references have been augmented.
        records: of the run.
        settings: how rows are scored.
        size: features per chunk.
        done: numbers of the chunks to leave out.
    """
    sampling = settings.sampling

    def shared() -> Iterator[dict[bytes, Feature]]:
        seen = Distinct()
        try:
            for part in parts:
                features = _features(
                    part, augmented_of(part, records), samples_of(part, records, sampling), settings
                )
                new = set(seen.new(list(features)))
                yield {key: feature for key, feature in features.items() if key not in new}
        finally:
            seen.close()

    return _chunks(FEATURES, shared(), size, done)


def score_chunks(parts: Iterable[Part], records: Records, settings: Settings, done: set[int]) -> Iterator[Chunk]:
    """The rows with their augmented references and the features that they share with other chunks of rows.

    Args:
        parts: the rows that are to be scored, a chunk's at a time; their references have been augmented and their
            shared features computed.
        records: of the run.
        settings: how rows are scored.
        done: numbers of the chunks to leave out.
    """
    for part in parts:
        if part.number in done:
            continue
        keys = {pair: item_key(pair) for row in part.wanted_pairs for pair in row}
        encoded = records.get(AUGMENT, list(keys.values()))
        references = [tuple(encoded[keys[pair]] for pair in row) for row in part.wanted_pairs]
        augmented = [[decode_augmented(one) for one in row] for row in references]
        samples = _encoded_samples(part, records, settings.sampling)
        features = _features(part, augmented, list(map(decode_samples, samples)), settings)
        known = {features[key]: value for key, value in records.get(FEATURES, list(features)).items()}
        requests = part.requests(settings.sampling)
        items = tuple(zip(part.candidates, part.contexts, references, requests, samples, strict=True))
        yield Chunk(SCORE, part.number, items, known)


def augmented_of(part: Part, records: Records) -> list[list[Augmented]]:
    """The augmented references of each row; none where they are not wanted."""
    pairs = part.wanted_pairs
    keys = {pair: item_key(pair) for row in pairs for pair in row}
    encoded = records.get(AUGMENT, list(keys.values()))
    augmented = {pair: decode_augmented(encoded[key]) for pair, key in keys.items()}
    return [[augmented[pair] for pair in row] for row in pairs]


def samples_of(part: Part, records: Records, settings: SamplingSettings) -> list[Samples]:
    """The samples of each row's context; none where only rows with blank candidates have it."""
    return list(map(decode_samples, _encoded_samples(part, records, settings)))


def _encoded_samples(part: Part, records: Records, settings: SamplingSettings) -> list[bytes]:
    keys = [item_key(request) for request in part.requests(settings)]
    encoded = records.get(SAMPLE, list(dict.fromkeys(keys)))
    return [encoded.get(key, _NO_SAMPLES) for key in keys]


def _features(
    part: Part, augmented: list[list[Augmented]], of_rows: list[Samples], settings: Settings
) -> dict[bytes, Feature]:
    """What the scores of some rows are computed from, by key."""
    requests = part.requests(settings.sampling)
    samples = dict(zip(requests, of_rows, strict=True))
    form = Form.of(settings.similarity)
    needs = Scorable(part.candidates, part.contexts, augmented, requests, samples, form).needs
    return {item_key((kind, item)): (kind, item) for kind, items in needs.items() for item in items}


def _chunks(stage: str, batches: Iterable[dict[bytes, Any]], size: int, done: set[int]) -> Iterator[Chunk]:
    """The different items of all batches (key to item), cut into chunks."""
    distinct = Distinct()
    numbers, items = count(), list[Any]()
    try:
        for batch in batches:
            items += [batch[key] for key in distinct.new(list(batch))]
            while len(items) >= size:
                if (number := next(numbers)) not in done:
                    yield Chunk(stage, number, tuple(items[:size]))
                items = items[size:]
        if items and (number := next(numbers)) not in done:
            yield Chunk(stage, number, tuple(items))
    finally:
        distinct.close()
