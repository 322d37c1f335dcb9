"""Neural peers against the papers' formulas, the other library, and plain forward passes."""

import itertools
import math

import numpy as np
import pytest
import torch

from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics import likelihood, tokens
from mars_score.meta.metrics.base import Models
from mars_score.meta.metrics.bert import BertScore
from mars_score.meta.metrics.likelihood import ContextPerplexity, Perplexity
from mars_score.meta.metrics.mover import Bag, MoverScore, movers_distance
from mars_score.meta.metrics.sms import SentenceMover
from mars_score.meta.metrics.tokens import TokenEncoder, Tokens, Transformer
from mars_score.models.engine import surprisal
from mars_score.models.engine.language_model import CausalLanguageModel
from mars_score.models.engine.prompt_memory import PromptMemory
from mars_score.models.engine.surprisal import mean_surprisals
from mars_score.settings import resolve_settings

pytest.importorskip("bert_score")
pytest.importorskip("ot")

REFERENCES = (
    "The baker opens her shop.",
    "The children walk along the river. They stop on the bridge!",
    "It will rain before noon",
)
ROWS = [
    ("The baker opens a shop in the morning.", REFERENCES[:1], "The harbour wakes early."),
    ("Children stop. Look at the boats on the river.", REFERENCES[1:], "The harbour wakes early."),
    ("rain", REFERENCES, ""),
    ("He forgot his ticket, and he would go back and find it.", REFERENCES[2:], "He was at the theatre. " * 20),
]


def models(**objects) -> Models:
    settings = resolve_settings("mini", variant="plus", **objects)
    return Models(settings)


def metric_with(cls, provider):
    metric = cls(models())
    metric.tokens = provider
    return metric


class Invented:
    """Words are tokens with given vectors; the document frequencies come from the texts themselves."""

    def __init__(self, vectors):
        self.vectors = {word: np.array(vector, dtype=np.float32) for word, vector in vectors.items()}
        self.names = list(vectors)

    def _words(self, text):
        return text.replace(".", " .").split()

    def ids(self, texts):
        return [[self.names.index(word) for word in self._words(text)] for text in texts]

    def encode(self, texts):
        return {text: self._tokens(self._words(text)) for text in texts}

    def _tokens(self, words):
        ids = tuple(map(self.names.index, words))
        # "##" marks a piece that continues a word, as in WordPiece
        begins = tuple(not word.startswith("##") for word in words)
        return Tokens(ids, tuple(words), begins, np.stack([self.vectors[word] for word in words]))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_distance_is_the_best_assignment_for_equal_weights(size):
    generator = np.random.default_rng(size)
    a, b = generator.normal(size=(2, size, 3))
    best = min(
        np.mean([math.dist(a[i], b[j]) for i, j in enumerate(order)])
        for order in itertools.permutations(range(size))
    )
    even = np.ones(size)
    assert movers_distance(Bag.of(even, a), Bag.of(even, b)) == pytest.approx(best, abs=1e-12)


def test_distance_by_hand():
    """3/4 of the mass at 0 and 1/4 at 4, against 1/2 each: a quarter travels 4."""
    points = np.array([[0.0], [4.0]])
    assert movers_distance(Bag.of(np.array([3.0, 1.0]), points), Bag.of(np.ones(2), points)) == pytest.approx(1.0)


def test_moverscore_by_hand():
    """Weights log(4/3), log(2) and log(4) from three documents; unit vectors at right angles are sqrt 2 apart."""
    provider = Invented({"x": [2, 0], "y": [0, 5], "##z": [1, 1], ".": [3, 1], "new": [1, 0]})
    corpus = ["x y", "x .", "##z"]
    x, y, new = math.log(4 / 3), math.log(4 / 2), math.log(4 / 1)
    metric = metric_with(MoverScore, provider)
    # x: df 2, y: df 1; "##z" and "." do not count.
    found = metric.score([("x y ##z.", ("x y",), ""), ("x", ("y.",), ""), ("x y", ("x",), "")], corpus)
    apart = math.sqrt(2)
    assert found == pytest.approx([1.0, 1 - apart, 1 - y / (x + y) * apart], abs=1e-7)
    assert metric.score([("new y", ("y",), "")], corpus) == pytest.approx([1 - new / (new + y) * math.sqrt(2)])


def test_moverscore_of_opposite_vectors_is_its_minimum():
    provider = Invented({"x": [2, 0], "w": [-1, 0]})
    assert metric_with(MoverScore, provider).score([("x", ("w",), "")], ["w"]) == pytest.approx(
        [MoverScore.minimum]
    )


def test_sentence_mover_by_hand():
    """Two sentences: words and sentences of both share the mass, half each."""
    provider = Invented({"aa": [0, 0], "bb": [4, 0], "cc": [0, 3], "the": [9, 9], ".": [7, 7]})
    metric = metric_with(SentenceMover, provider)
    # Candidate: aa, bb and their mean (2, 0) weigh 1/4, 1/4, 1/2; reference: all of it is at (0, 3).
    expected = math.exp(-(3 / 4 + 5 / 4 + math.hypot(2, 3) / 2))
    assert metric.score([("aa the bb.", ("cc.",), "")], []) == pytest.approx([expected])
    # Candidate: aa. bb cc. has points aa, bb, cc, aa (sentence), (2, 1.5) with 1, 1, 1, 1, 2 of 6.
    expected = math.exp(-(3 + 5 + 0 + 3 + 2 * 2.5) / 6)
    assert metric.score([("aa. bb cc.", ("cc.",), "")], []) == pytest.approx([expected])


def test_sentence_mover_keeps_a_text_of_stop_words():
    provider = Invented({"aa": [0, 0], "the": [0, 1], ".": [0, 1]})
    found = metric_with(SentenceMover, provider).score([("the.", ("aa.",), "")], [])
    assert found == pytest.approx([math.exp(-1)])


@pytest.mark.parametrize("cls", [BertScore, MoverScore, SentenceMover])
def test_identical_texts_get_the_maximum(cls, encoder):
    rows = [(text, (text, "Another text."), "") for text in [*REFERENCES, "?"]]
    assert cls(models(encoder=encoder)).score(rows, REFERENCES) == pytest.approx([1.0] * len(rows), abs=1e-5)


@pytest.mark.parametrize("cls", [BertScore, MoverScore, SentenceMover])
def test_a_row_does_not_depend_on_others(cls, encoder, monkeypatch):
    metric = cls(models(encoder=encoder))
    together = metric.score(ROWS, REFERENCES)
    alone = [metric.score([row], REFERENCES)[0] for row in ROWS]
    assert together == pytest.approx(alone, rel=1e-6 if cls is BertScore else 1e-9)  # it weighs in float32
    monkeypatch.setattr(tokens, "PART_CHARACTERS", 1)
    assert metric.score(ROWS[::-1], REFERENCES)[::-1] == pytest.approx(together, rel=1e-6)


@pytest.mark.parametrize("cls", [BertScore, MoverScore, SentenceMover])
def test_best_over_references(cls, encoder):
    metric = cls(models(encoder=encoder))
    single = metric.score([(ROWS[2][0], (reference,), "") for reference in REFERENCES], REFERENCES)
    assert metric.score([ROWS[2]], REFERENCES) == pytest.approx([max(single)])


def test_token_vectors(encoder):
    """Those of the encoder itself, without the first and last token, cut at its positions."""
    texts = ["The baker opens her shop.", "rain", "again and " * 200, "Unheard-of words"]
    found = TokenEncoder(encoder, batch_size=2).encode(texts)
    assert set(found) == set(texts)
    for text in texts:
        states = encoder.encode(text, output_value="token_embeddings", convert_to_numpy=False)
        assert np.allclose(found[text].vectors, states.numpy()[1:-1], atol=1e-9)
        assert list(found[text].ids) == encoder.tokenizer(text.strip())["input_ids"][1:-1][:124]
    last = found["Unheard-of words"]
    firsts = [word for word, begins in zip(last.words, last.begins, strict=True) if begins]
    assert firsts == ["Unheard", "-", "of", "words"]


def test_positions_and_not_the_trained_length(encoder):
    length, encoder.max_seq_length = encoder.max_seq_length, 7
    try:
        assert Transformer.of(encoder).window == 126
        assert encoder.max_seq_length == 7
    finally:
        encoder.max_seq_length = length


@pytest.mark.parametrize("cls", [BertScore, MoverScore, SentenceMover])
def test_static_vectors_are_refused(cls, encoder):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    static = StaticEmbedding(encoder.tokenizer, embedding_weights=np.zeros((512, 4), dtype=np.float32))
    metric = cls(models(encoder=SentenceTransformer(modules=[static], device="cpu")))
    with pytest.raises(ModelUnavailableError, match="no transformer"):
        metric.score(ROWS, REFERENCES)


def test_bert_score_is_the_packages(encoder, tmp_path):
    """Pair by pair, so that nothing is padded; both read the same folder's model."""
    from bert_score import BERTScorer

    encoder[0].auto_model.save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    theirs = BERTScorer(model_type=str(tmp_path), num_layers=2, device="cpu", use_fast_tokenizer=True)
    theirs._model.double()
    theirs._tokenizer.model_max_length = 126
    expected = [
        max(float(theirs.score([candidate], [reference])[2]) for reference in references)
        for candidate, references, _ in ROWS
    ]
    assert BertScore(models(encoder=encoder)).score(ROWS, []) == pytest.approx(expected, abs=1e-6)


def test_bert_score_leaves_the_encoder_as_it_is(encoder, capsys):
    encoder.train()
    try:
        before = encoder.tokenizer.model_max_length
        assert BertScore(models(encoder=encoder)).score([("\u200b", ("a",), "")], []) is not None
        assert encoder[0].auto_model.training
        assert encoder.tokenizer.model_max_length == before
    finally:
        encoder.eval()
    assert capsys.readouterr() == ("", "")


def plain_surprisal(pair, context, text, window, most=None):
    """Mean over the text's tokens, from one forward pass over the whole, as transformers does it."""
    model, tokenizer = pair
    before = tokenizer(context, add_special_tokens=False)["input_ids"][:most] if context else []
    text = (" " if context else "") + text
    ids = tokenizer(text, add_special_tokens=False)["input_ids"][: window - 1]
    if tokenizer("a")["input_ids"][0] == tokenizer.bos_token_id or not context:
        before = [tokenizer.bos_token_id, *before]
    before = before[: window - len(ids)]
    with torch.no_grad():
        logits = model(torch.tensor([before + ids])).logits[0, len(before) - 1 : -1]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(ids)).item()


LONG = "The work began in March. " * 40
PAIRS = [
    *((context, candidate) for candidate, _, context in ROWS),
    ("", ROWS[0][0]),
    *((LONG, " ".join(["road"] * count)) for count in (1, 7, 30)),
    (LONG, "The road is busy. " * 60),
    ("", "The road is busy. " * 60),
]


def test_surprisals_are_those_of_a_plain_pass(causal):
    model = CausalLanguageModel(*causal)
    expected = [plain_surprisal(causal, context.strip(), text.strip(), 96) for context, text in PAIRS]
    assert len(set(expected)) == len(PAIRS)
    assert mean_surprisals(model, PAIRS, 128) == pytest.approx(expected, rel=1e-9)
    assert mean_surprisals(model, [*PAIRS, *PAIRS], 3) == pytest.approx([*expected, *expected], rel=1e-9)
    alone = [mean_surprisals(model, [pair], 128)[0] for pair in PAIRS]
    assert alone == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("most", [1, 5, 1000])
def test_at_most_so_many_tokens_of_a_context_are_read(causal, most):
    model = CausalLanguageModel(*causal)
    found = surprisal.surprisals(model, PAIRS, max_context_tokens=most)
    expected = [plain_surprisal(causal, context.strip(), text.strip(), 96, most) for context, text in PAIRS]
    assert [one.mean for one in found] == pytest.approx(expected, rel=1e-9)
    without = surprisal.surprisals(model, PAIRS)
    lengths = [len(model.codec.encode(context.strip())) if context.strip() else 0 for context, _ in PAIRS]
    assert [one.cut for one in found] == [
        length > most or other.cut for length, other in zip(lengths, without, strict=True)
    ]


def test_surprisals_do_not_depend_on_the_memory(causal, monkeypatch):
    model = CausalLanguageModel(*causal)
    expected = mean_surprisals(model, PAIRS, 128)
    monkeypatch.setattr(surprisal, "cache_bytes", lambda device: 1)
    assert mean_surprisals(model, PAIRS, 128) == pytest.approx(expected, rel=1e-9)


def test_a_context_is_read_once(causal, monkeypatch):
    model = CausalLanguageModel(*causal)
    fed, read = [], model.read
    monkeypatch.setattr(model, "read", lambda *args, **more: fed.append(len(args[0])) or read(*args, **more))
    mean_surprisals(model, [(LONG, text) for text in "abcde"], 2)
    assert fed == [1]


def test_prompts_that_are_remembered_are_not_read_again(causal, monkeypatch):
    model = CausalLanguageModel(*causal)
    contexts = ("The baker opens her shop.", "It will rain.", "He forgot his ticket at home.")
    pairs = [(context, text) for context in contexts for text in ("He said so.", "rain")]
    expected = mean_surprisals(model, [*pairs, ("", "rain")])
    lengths = [len(model.codec.encode(context)) - (not model.codec.adds_begin) for context in contexts]
    memory = PromptMemory(sum(lengths[1:]) * model.token_bytes)
    fed, read = [], model.read
    monkeypatch.setattr(model, "read", lambda texts, *args: fed.extend(map(len, texts)) or read(texts, *args))

    def means(some):
        return [one.mean for one in surprisal.surprisals(model, some, None, memory)]

    assert means(pairs[2:]) == means(pairs[2:]) == pytest.approx(expected[2:-1], rel=1e-9)
    assert sorted(fed) == sorted(lengths[1:])
    fed.clear()
    assert means(pairs[2:4]) == pytest.approx(expected[2:4], rel=1e-9)
    assert means(pairs[:2]) == pytest.approx(expected[:2], rel=1e-9)  # in the place of the last one
    assert means([*pairs[:4], ("", "rain")]) == pytest.approx([*expected[:4], expected[-1]], rel=1e-9)
    assert means(pairs[4:]) == pytest.approx(expected[4:-1], rel=1e-9)
    assert fed == [lengths[0], lengths[2]]


@pytest.mark.parametrize(("cls", "context"), [(Perplexity, ""), (ContextPerplexity, ROWS[0][2])])
def test_scores_are_minus_perplexities(cls, context, causal, monkeypatch):
    metric = cls(models(language_model=causal))
    assert metric.minimum == -causal[0].config.vocab_size
    asked = []

    def means(model, pairs, most_rows=None):
        asked.extend(pairs)
        return [0.0, math.log(10), 50.0, math.inf]

    monkeypatch.setattr(likelihood, "mean_surprisals", means)
    found = metric.score([ROWS[0]] * 4, [])
    assert asked == [(context, ROWS[0][0])] * 4
    assert found == pytest.approx([-1, -10, metric.minimum, metric.minimum])


def test_keys_name_models_and_versions(encoder, causal):
    both = models(encoder=encoder, language_model=causal)
    keys = [cls(both).key() for cls in (BertScore, MoverScore, SentenceMover, Perplexity, ContextPerplexity)]
    assert len({tuple(key) for key in keys}) == 5
    other = models(encoder=encoder, language_model=causal, dtype="float64")
    assert BertScore(other).key() != keys[0]
    assert Perplexity(other).key() != keys[3]
