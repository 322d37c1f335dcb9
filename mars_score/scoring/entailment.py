"""What an entailment model says of a candidate: of each sentence against the references and the context."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import sqrt
from typing import Any, NamedTuple

from mars_score.cache import ResultStore
from mars_score.data.sentences import sentences
from mars_score.data.words import plain_words, split_words
from mars_score.lookup import Results, from_json
from mars_score.models.fingerprints import Current
from mars_score.models.loading import shared_model
from mars_score.progress import Runtime
from mars_score.settings.stages import ModelSettings

LIKELY = 0.5  # probability above which a sentence is said to be supported or contradicted
SENTENCES = 20  # of a text that are read; the rest is not judged
_PASSAGE_WORDS = 60  # of the part of a context that a sentence is compared with
_UNLIKELY = 0.1  # probability below which a sentence is taken not to be contradicted
_METHOD = 2  # part of the keys of stored results

Pair = tuple[str, str]  # premise and hypothesis


class Entailment(NamedTuple):
    """The probabilities that a premise entails and that it contradicts a hypothesis; the rest is neither."""

    support: float
    contradiction: float


class Premises(NamedTuple):
    """A sentence of a candidate, and the texts that it is compared with: none, one or two."""

    sentence: str
    texts: tuple[str, ...]

    @property
    def pairs(self) -> list[Pair]:
        """Each text with the sentence."""
        return [(text, self.sentence) for text in self.texts]


@dataclass(frozen=True)
class Verdict:
    """What a sentence of a candidate is to the references and the context, as far as the model sees.

    Attributes:
        sentence: of the candidate.
        verdict: ``"supported"``, ``"contradicted"`` or, where neither is probable, ``"not found"``.
        probability: of the verdict; for ``"not found"`` that of neither by the premise that says most.
        premise: the reference or part of the context that says so; blank for ``"not found"``.
    """

    sentence: str
    verdict: str
    probability: float
    premise: str


def premises(candidate: str, references: Sequence[str], context: str) -> list[Premises]:
    """Of each of the first ``SENTENCES`` of a candidate: a passage of the nearest reference, one of the context.

    There may be no references, and a blank context is none; the candidate is not blank.
    """
    words = {reference: frozenset(plain_words(reference)) for reference in references}
    compared = []
    for sentence in first_sentences(candidate):
        own = frozenset(plain_words(sentence))
        nearest = max(words, key=lambda text: _nearness(own, words[text]), default="")
        texts = [nearest_passage(sentence, text) for text in (nearest, context) if text]
        compared.append(Premises(sentence, tuple(texts)))
    return compared


def read_contradictions(
    results: Results[Pair, Entailment],
    store: ResultStore,
    items: Iterable[Premises],
    progress: Callable[[int, int], None] | None = None,
) -> dict[Premises, float]:
    """For each different sentence how probable it is that all its premises contradict it and none supports it.

    The product of the probabilities, as if they were independent; a product below ``_UNLIKELY`` counts as 0, so
    that the second premise is not read where the first hardly contradicts the sentence. ``progress`` counts the
    pairs that are new.
    """
    contradicted = {item: float(bool(item.texts)) for item in items}
    supported = dict.fromkeys(contradicted, 0.0)
    for number in range(2):
        likely = [item for item, p in contradicted.items() if p >= _UNLIKELY and number < len(item.texts)]
        read = results.read(store, [item.pairs[number] for item in likely], progress)
        for item in likely:
            entailment = read[item.pairs[number]]
            contradicted[item] *= entailment.contradiction
            supported[item] = max(supported[item], entailment.support)
    return {item: p * (1 - supported[item]) if p >= _UNLIKELY else 0.0 for item, p in contradicted.items()}


def verdict(item: Premises, read: Mapping[Pair, Entailment]) -> Verdict:
    """The verdict on a sentence: its strongest support if that is likely, else the strongest contradiction."""
    support, supporting = max((read[pair].support, pair[0]) for pair in item.pairs)
    contradiction, contradicting = max((read[pair].contradiction, pair[0]) for pair in item.pairs)
    if support > LIKELY:
        return Verdict(item.sentence, "supported", support, supporting)
    if contradiction > LIKELY:
        return Verdict(item.sentence, "contradicted", contradiction, contradicting)
    return Verdict(item.sentence, "not found", 1 - max(sum(read[pair]) for pair in item.pairs), "")


def first_sentences(text: str) -> list[str]:
    """The sentences of a text that are read."""
    return sentences(text)[:SENTENCES] or [text]


def nearest_passage(sentence: str, text: str) -> str:
    """The sentence of a text that is nearest to another by its words, with its neighbours.

    All together have at most ``_PASSAGE_WORDS`` words, but for a longer sentence.
    """
    parts = _sentences_of(text)
    own = frozenset(plain_words(sentence))
    nearness = [_nearness(own, words) for _, words in parts]
    first = last = nearness.index(max(nearness))
    room = _PASSAGE_WORDS - len(split_words(parts[first][0]))
    while True:
        before = len(split_words(parts[first - 1][0])) if first > 0 else room + 1
        after = len(split_words(parts[last + 1][0])) if last + 1 < len(parts) else room + 1
        if min(before, after) > room:
            return " ".join(text for text, _ in parts[first : last + 1])
        if before <= room:
            first, room = first - 1, room - before
        if after <= room:
            last, room = last + 1, room - after


def _nearness(words: frozenset[str], others: frozenset[str]) -> float:
    """The cosine of two sets of words."""
    return len(words & others) / sqrt(len(words) * len(others)) if words and others else 0.0


@lru_cache(maxsize=64)  # rows with the same reference and context stand together
def _sentences_of(text: str) -> list[tuple[str, frozenset[str]]]:
    """The sentences of a text with their words."""
    return [(sentence, frozenset(plain_words(sentence))) for sentence in sentences(text)]


def entailments(models: ModelSettings, runtime: Runtime) -> Results[Pair, Entailment]:
    """What the first text of a pair says of the second; the model is loaded only for new pairs."""
    load = partial(shared_model, "entailment_model", models, runtime)

    def compute(model: Any, pairs: list[Pair], done: Callable[[Pair, Entailment], None]) -> None:
        from mars_score.models.nli import classes, classify

        support, contradiction = classes(model)

        def keep(pair: Pair, probabilities: list[float]) -> None:
            done(pair, Entailment(probabilities[support], probabilities[contradiction]))

        classify(model, pairs, keep, runtime.encoder_batch_size)

    return Current(models.entailment_model, load).results(
        "scores",
        (models.numbers, "entailment", _METHOD),
        compute,
        parts=lambda pair: pair,
        decode=lambda stored: Entailment(*from_json(stored)),
    )
