"""Synthetic pairs, their signals, and the texts that they are made of."""

import numpy as np
import pytest
import tiny_models

from mars_score import MarsScorer
from mars_score.augment.augmenter import Augmenter
from mars_score.learning.pairs import (
    Source,
    contrasts,
    drop_words,
    generator,
    make_pairs,
    read_corpus,
    with_sentences,
)
from mars_score.learning.signals import read_signals
from mars_score.settings import resolve_settings
from mars_score.store.runtime import Runtime

TEXTS = [
    "The old harbour town wakes early in the summer.",
    "The baker opens her shop and puts warm bread in the window.",
    "She said that she waited for an hour to get her car fixed.",
    "The children walk to school along the river, past the library.",
]
CONTEXT = "It will rain before noon. Nobody answered the phone. They stop on the bridge to look at the boats."
SOURCES = [Source(text, CONTEXT if index % 2 else "") for index, text in enumerate(TEXTS)]


def tiny_settings():
    models = {"encoder": tiny_models.tiny_encoder(4), "language_model": tiny_models.tiny_gpt2(1)}
    return resolve_settings("mini", variant="fast", **models)


@pytest.fixture(scope="module")
def many():
    """Texts of which a fifth is infilled, and the pairs."""
    sources = [
        Source(f"{text} {number}", one.context)
        for number in range(8)
        for text, one in zip(TEXTS, SOURCES, strict=True)
    ]
    return sources, make_pairs(sources, 300, 1, Augmenter(tiny_settings(), Runtime()))


def test_pairs_of_each_method(many):
    sources, pairs = many
    infilled = {"infill random", "infill span", "infill and drop"}
    assert {pair.method for pair in pairs} == {"intact", "drop", "reorder", "retrieve", "foreign", *infilled}
    texts = {source.text for source in sources}
    for pair in pairs:
        text, words = pair.source.text, pair.source.text.split()
        assert pair.source in sources
        assert pair.candidate.strip()
        assert {
            "intact": pair.candidate == text,
            "reorder": sorted(pair.candidate.split()) == sorted(words) and pair.candidate != text,
            "retrieve": pair.candidate in CONTEXT,
            "foreign": pair.candidate in texts - {text},
            "infill span": pair.candidate.startswith(words[0]) or pair.candidate.endswith(words[-1]),
        }.get(pair.method, True)
    for source in sources:  # two shares of words: the larger leaves fewer
        few, many = (pair for pair in pairs if pair.method == "drop" and pair.source == source)
        assert len(few.candidate.split()) > len(many.candidate.split())


def test_pairs_depend_on_the_text_and_the_seed_alone():
    pairs = make_pairs(SOURCES, 100)
    assert pairs == make_pairs(SOURCES[::-1], 100) != make_pairs(SOURCES, 100, seed=1)
    with_more = make_pairs([*SOURCES, Source("A text that was added to the others.")], 100)
    same = [pair for pair in with_more if pair.source in SOURCES and pair.method != "foreign"]
    assert {*same} == {pair for pair in pairs if pair.method != "foreign"}
    assert len(make_pairs(SOURCES, 9)) == 9


def test_words_dropped_and_contrasts():
    assert drop_words("one two", 0.9, generator()) in ("one", "two")
    assert len(drop_words("a b c d e f g h i j", 0.3, generator()).split()) == 7
    words_deleted, foreign_added, disordered = contrasts(SOURCES[1], SOURCES, 0)
    words = TEXTS[1].split()
    assert len(words_deleted.split()) == len(words) - round(0.3 * len(words))
    assert foreign_added.startswith(TEXTS[1])
    assert foreign_added[len(TEXTS[1]) + 1 :] in (TEXTS[0], TEXTS[2])
    assert sorted(disordered.split()) == sorted(words)
    assert disordered != TEXTS[1]


def test_sentences_of_contexts_join_the_texts():
    sources = with_sentences(SOURCES)
    assert sources[: len(SOURCES)] == SOURCES
    added = [Source(text, CONTEXT) for text in ("It will rain before noon.", "Nobody answered the phone.")]
    assert sources[len(SOURCES) : -1] == added
    assert sources[-1].text.startswith("They stop on the bridge")


def test_corpus_files(tmp_path):
    lines = tmp_path / "texts.txt"
    lines.write_text("too short\nA line that is long enough.\n\n")
    assert read_corpus(lines) == [Source("A line that is long enough.")]
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"references": ["One two three four.", "Five six seven eight."], "context": "Before it."}\n')
    texts = ("One two three four.", "Five six seven eight.")
    assert read_corpus(rows) == [Source(text, "Before it.") for text in texts]
    with pytest.raises(ValueError, match="column 'text' is missing"):
        read_corpus(rows, "text")
    rows.write_text('{"references": ["One two three four.", 5], "context": "Before it."}\n')
    with pytest.raises(TypeError, match=r"rows.jsonl:1: column 'references' must be a string"):
        read_corpus(rows)
    lines.write_text("too short\n")
    with pytest.raises(ValueError, match="no text has 4 to 100 words"):
        read_corpus(lines)


def test_signals(many):
    _, pairs = many
    of_models = tiny_settings()
    signals = read_signals(pairs, of_models, Runtime(), seed=1)
    sizes = {"MARS": 1, "BLEU": 1, "likelihood": 2}
    assert [(name, values.shape) for name, values in signals.items()] == [
        (name, (len(pairs), size)) for name, size in sizes.items()
    ]
    intact = np.array([pair.method == "intact" for pair in pairs])
    assert signals["BLEU"][intact] == pytest.approx(1.0, abs=1e-5)
    assert signals["BLEU"][~intact].mean() < 0.95
    columns = [p.candidate for p in pairs], [p.source.text for p in pairs], [p.source.context for p in pairs]
    own = MarsScorer(variant="fast", store=False, encoder=of_models.models.encoder)
    assert signals["MARS"][:, 0] == pytest.approx(own.score(*columns).scores, abs=1e-5)
    read = ~np.isnan(signals["likelihood"]).any(axis=1)  # the texts that the language model has infilled
    infilled = {pair.source for pair in pairs if pair.method.startswith("infill")}
    assert infilled
    assert {pair.source for pair, of_pair in zip(pairs, read, strict=True) if of_pair} == infilled
    last = read_signals(pairs[-1:], of_models, Runtime(), seed=1)
    assert all(last[name][0] == pytest.approx(signals[name][-1], abs=1e-4, nan_ok=True) for name in signals)


@pytest.mark.usefixtures("presets_as_they_are")
def test_signals_of_the_entailment_model(many):
    """The one of the settings reads the pairs, for MARS's own score, too; no other preset's is looked for."""
    pairs = many[1][:5]
    of_models = resolve_settings("mini", variant="fast", encoder=tiny_models.tiny_encoder(4))
    signals = read_signals(pairs, of_models, Runtime())
    assert signals["entailment"].shape == (5, 2)
    scorer = MarsScorer("mini", variant="fast", encoder=of_models.models.encoder, store=False)
    columns = [p.candidate for p in pairs], [p.source.text for p in pairs], [p.source.context for p in pairs]
    assert signals["MARS"][:, 0] == pytest.approx(scorer.score(*columns).scores, abs=1e-6)
    for pair, said in zip(pairs, signals["entailment"], strict=True):
        sole = read_signals([pair], of_models, Runtime())["entailment"][0]
        assert 0 <= said.min() <= said.sum() <= 1 + 1e-9
        assert said == pytest.approx(sole, abs=1e-5)
