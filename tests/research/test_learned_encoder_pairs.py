"""Synthetic pairs, their signals, and the texts that they are made of."""

import numpy as np
import pytest

from mars_score import MarsScorer
from mars_score.text import split_words
from research.learned_encoders.pairs import (
    Source,
    compute_signals,
    contrasts,
    make_pairs,
    read_corpus,
    with_sentences,
    word_spans,
)
from tests import jsonl, tiny_models
from tests.belief import believe

TEXTS = [
    "The old harbour town wakes early in the summer.",
    "The baker opens her shop and puts warm bread in the window.",
    "She said that she waited for an hour to get her car fixed.",
    "The children walk to school along the river, past the library.",
]
CONTEXT = "It will rain before noon. Nobody answered the phone. They stop on the bridge to look at the boats."
SOURCES = [Source(text, CONTEXT if index % 2 else "") for index, text in enumerate(TEXTS)]
MANY = [Source(f"{source.text} {number}", source.context) for number in range(5) for source in SOURCES]
pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")


@pytest.fixture(scope="module")
def models():
    return {"encoder": tiny_models.tiny_encoder(4), "language_model": tiny_models.tiny_gpt2(1)}


@pytest.fixture(scope="module")
def scorer(models):
    return MarsScorer("mini", variant="fast", store=False, entailment_model=None, **models)


@pytest.fixture(scope="module")
def pairs(scorer):
    """Of each of MANY; a fifth is infilled."""
    return make_pairs(MANY, 190, scorer.calls, seed=1)


def candidates_of(source, pairs):
    return [row.candidate for row in pairs if (row.references, row.context) == ((source.text,), source.context)]


def in_disorder(text, words):
    return sorted(text.split()) == sorted(words) != text.split() != words


def test_what_is_made_of_a_text(pairs):
    infilled = 0
    for source in MANY:
        words = source.text.split()
        intact, few_dropped, many_dropped, reordered, *others = candidates_of(source, pairs)
        assert intact == source.text
        assert len(words) > len(few_dropped.split()) > len(many_dropped.split())
        assert in_disorder(reordered, words)
        if source.context:
            assert others.pop(0) in CONTEXT
        assert others.pop(0) in {other.text for other in MANY} - {source.text}
        if others:
            at_random, dropped, _, in_a_row = others
            infilled += 1
            assert len(dropped.split()) < len(at_random.split())
            assert in_a_row.startswith(words[0]) or in_a_row.endswith(words[-1])
    assert 0 < infilled < len(MANY) / 2


def test_pairs_depend_on_the_text_and_the_seed_alone(scorer):
    calls = scorer.calls
    pairs = make_pairs(SOURCES, 100, calls)
    assert pairs == make_pairs(SOURCES[::-1], 100, calls) != make_pairs(SOURCES, 100, calls, seed=1)
    with_more = make_pairs([*SOURCES, Source("A text that was added to the others.")], 100, calls)
    for source in SOURCES:
        before, after = candidates_of(source, pairs), candidates_of(source, with_more)
        assert sum(text not in after for text in before) <= 1  # that of another source
    assert len(make_pairs(SOURCES, 9, calls)) == 9


def test_contrasts():
    words_deleted, foreign_added, disordered = contrasts(SOURCES[1], SOURCES, 0)
    words = TEXTS[1].split()
    assert len(words_deleted.split()) == len(words) - round(0.3 * len(words))
    assert foreign_added in [f"{TEXTS[1]} {text}" for text in (TEXTS[0], TEXTS[2])]
    assert in_disorder(disordered, words)


def test_sentences_of_contexts_join_the_texts():
    sentences = [f"{text}." for text in CONTEXT.removesuffix(".").split(". ")]
    assert with_sentences(SOURCES) == [*SOURCES, *(Source(text, CONTEXT) for text in sentences)]


@pytest.fixture
def corpus(tmp_path):
    """Writes a corpus of the bytes of lines, or of rows; returns its path."""

    def write(content):
        if not isinstance(content, bytes):
            return jsonl.write(tmp_path / "rows.jsonl", content)
        (tmp_path / "texts.txt").write_bytes(content)
        return tmp_path / "texts.txt"

    return write


FIRST, SECOND = "One two three four five.", "Six seven eight nine."


def test_corpora(corpus):
    lines = corpus(f"\ufefftoo short\r\n{FIRST}\u2028Six.\r\n\n{SECOND}\n".encode())
    assert read_corpus(lines) == [Source(f"{FIRST}\u2028Six."), Source(SECOND)]
    rows = corpus([{"references": [FIRST, SECOND], "context": "Before it."}])
    assert read_corpus(rows) == [Source(FIRST, "Before it."), Source(SECOND, "Before it.")]
    rows = corpus([{"references": FIRST, "reference": SECOND, "doc": {"text": "Before it."}}])
    assert read_corpus(rows, "reference") == [Source(SECOND)]
    assert read_corpus(rows, "reference", "doc.text") == [Source(SECOND, "Before it.")]


@pytest.mark.parametrize(
    ("content", "columns", "fault"),
    [
        (b"too short\n", (), r"texts\.txt: no text"),
        ("Der schöne Tag am See.\n".encode("latin-1"), (), r"texts\.txt: not UTF-8; convert"),
        ([{"references": [FIRST, 5], "context": "a"}], (), "rows.jsonl:1: column 'references'"),
        ([{"references": FIRST}], ("text",), "'text'"),
        ([{"references": FIRST}], ("references", "doc.context"), "rows.jsonl:1: column 'doc.context' is missing"),
    ],
)
def test_corpora_that_are_refused(corpus, content, columns, fault):
    with pytest.raises((ValueError, TypeError), match=fault):
        read_corpus(corpus(content), *columns)


@pytest.mark.parametrize("text", ["One  two, three.\n(four)", "\u4eca\u65e5\u306f\u3001 fine \u5929\u6c17 a a"])
def test_spans_of_words(text):
    assert [text[start:end] for start, end in word_spans(text)] == split_words(text)


def test_signals(pairs, scorer):
    signals = compute_signals(pairs, scorer, seed=1)
    sizes = {"MARS": 1, "BLEU": 1, "ROUGE": 3, "tokens": 3, "likelihood": 2}
    assert list(signals) == list(sizes)
    assert {name: values.shape for name, values in signals.items()} == {
        name: (len(pairs), size) for name, size in sizes.items()
    }
    intact = np.array([row.references == (row.candidate,) for row in pairs])
    for name in ("BLEU", "ROUGE", "tokens"):
        assert signals[name][intact] == pytest.approx(1.0, abs=1e-3)  # token vectors are float16
        assert signals[name][~intact].mean() < 0.95
    for name in ("ROUGE", "tokens"):
        precision, recall, f1 = signals[name].T
        assert f1 == pytest.approx(2 * precision * recall / np.maximum(precision + recall, 1e-9))
    shorter = [
        index for index, row in enumerate(pairs) if set(row.candidate.split()) < set(row.references[0].split())
    ]
    assert (signals["ROUGE"][shorter, 0] > signals["ROUGE"][shorter, 1]).all()  # dropped words cost recall
    judged = ~np.isnan(signals["likelihood"]).any(axis=1)
    infilled = {(source.text,) for source in MANY if len(candidates_of(source, pairs)) > 6}
    assert {pairs[index].references for index in np.flatnonzero(judged)} == infilled
    last = compute_signals(pairs[-1:], scorer, seed=1)
    assert all(last[name][0] == pytest.approx(signals[name][-1], abs=1e-4, nan_ok=True) for name in signals)


def test_signals_of_the_score_and_of_the_nli_model(pairs, models, nli, monkeypatch):
    """The NLI model of the scorer judges the pairs, and has its part in MARS's own score."""
    believe(monkeypatch, certain=0.2)
    columns = [[getattr(row, name) for row in pairs[:5]] for name in ("candidate", "references", "context")]
    own = []
    for entailment_model in (None, nli):
        named = {**models, "entailment_model": entailment_model}
        signals = compute_signals(pairs[:5], MarsScorer("mini", variant="plus", store=False, **named))
        scores = MarsScorer("mini", variant="fast", store=False, **named).score(*columns).scores
        assert signals["MARS"][:, 0] == pytest.approx(scores, abs=1e-6)
        assert ("entailment" in signals) is (entailment_model is not None)
        own.append(scores)
    assert own[0] != own[1]
    shares = signals["entailment"]
    assert shares.shape == (5, 2)
    assert ((shares > 0) & (shares.sum(axis=1, keepdims=True) <= 1 + 1e-9)).all()
