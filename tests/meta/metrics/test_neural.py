"""Neural peers against the papers' formulas, the other library, and plain forward passes."""

import itertools
import math
import re
import string

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics import Models, make_metric, neural
from mars_score.meta.metrics.neural import TokenEncoder, Tokens, bag, movers_distance
from mars_score.models import likelihood
from mars_score.models.causal_lm import CausalLanguageModel, Prompts
from mars_score.models.likelihood import log_probabilities
from mars_score.rows import Row
from tests import oracle_forms
from tests.meta.metrics.peer_rows import REFERENCES, ROWS

pytest.importorskip("bert_score")
pytest.importorskip("ot")

TOKEN_METRICS = ["bertscore", "moverscore", "sentence_mover"]


def make(name, **objects):
    return make_metric(name, Models(preset="mini", variant="plus", store=False, **objects))


@pytest.fixture(params=TOKEN_METRICS)
def metric(request, encoder):
    return make(request.param, encoder=encoder)


class Invented:
    """Words are tokens with given vectors; "##" begins a piece that continues a word, as in WordPiece."""

    def __init__(self, vectors):
        self.vectors = {word: np.array(vector, dtype=np.float64) for word, vector in vectors.items()}
        self.names = list(vectors)

    def tokenize(self, texts):
        ids = [[self.names.index(word) for word in text.replace(".", " .").split()] for text in texts]
        return {"input_ids": ids}

    def encode(self, texts):
        ids = self.tokenize(texts)["input_ids"]
        return {text: self._tokens(tokens) for text, tokens in zip(texts, ids, strict=True)}

    def _tokens(self, ids):
        words = [self.names[token] for token in ids]
        starts_word = np.array([not word.startswith("##") for word in words])
        vectors = np.stack([self.vectors[word] for word in words])
        return Tokens(ids, np.zeros(len(ids), dtype=bool), words, starts_word, vectors)


def score(name, vectors, rows, corpus=()):
    """Scores of (candidate, reference) pairs whose words have the given vectors."""
    metric = make(name)
    metric.encoder = Invented(vectors)
    return metric.score([Row(candidate, (reference,)) for candidate, reference in rows], corpus)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_distance_is_the_best_assignment_for_equal_weights(size):
    generator = np.random.default_rng(size)
    a, b = generator.normal(size=(2, size, 3))
    best = min(
        np.mean([math.dist(a[i], b[j]) for i, j in enumerate(order)])
        for order in itertools.permutations(range(size))
    )
    even = np.ones(size)
    assert movers_distance(bag(even, a), bag(even, b)) == pytest.approx(best, abs=1e-12)


def test_moverscore_by_hand():
    """Weights log(4/3), log(2) and log(4) from three documents; unit vectors at right angles are sqrt 2 apart."""
    vectors = {"x": [2, 0], "y": [0, 5], "##z": [1, 1], ".": [3, 1], "new": [1, 0], "w": [-1, 0]}
    x, y, new, apart = math.log(4 / 3), math.log(4 / 2), math.log(4 / 1), math.sqrt(2)
    # x: df 2, y: df 1; "##z" and "." do not count.
    rows = [("x y ##z.", "x y"), ("x", "y."), ("x y", "x"), ("new y", "y"), ("x", "w")]
    expected = [1.0, 1 - apart, 1 - y / (x + y) * apart, 1 - new / (new + y) * apart, -1.0]
    assert score("moverscore", vectors, rows, ["x y", "x .", "##z"]) == pytest.approx(expected, abs=1e-7)


def test_sentence_mover_by_hand():
    vectors = {"aa": [0, 0], "bb": [4, 0], "cc": [0, 3], "the": [9, 9], ".": [0, 1]}
    rows = [
        # aa, bb and their mean (2, 0) weigh 1/4, 1/4, 1/2; all of the reference is at (0, 3).
        ("aa the bb.", "cc.", (3 / 4 + 5 / 4 + math.hypot(2, 3) / 2)),
        # aa. bb cc. has points aa, bb, cc, aa (sentence), (2, 1.5) with 1, 1, 1, 1, 2 of 6.
        ("aa. bb cc.", "cc.", (3 + 5 + 0 + 3 + 2 * 2.5) / 6),
        # Of stop words and punctuation alone all tokens count.
        (".", "aa.", 1),
    ]
    scores = score("sentence_mover", vectors, [row[:2] for row in rows])
    assert scores == pytest.approx([math.exp(-distance) for *_, distance in rows])


def test_a_row_is_the_best_over_its_references_whatever_the_other_rows_are(metric, monkeypatch):
    monkeypatch.setattr(neural, "CHUNK_SIZE", 3)
    together = metric.score(ROWS * 2, REFERENCES)
    alone = [
        max(metric.score([Row(row.candidate, (reference,))], REFERENCES)[0] for reference in row.references)
        for row in ROWS
    ]
    assert together == pytest.approx(alone * 2, rel=1e-9)


def test_token_vectors(encoder):
    """Those of the encoder itself, cut at its window, with the words that they are pieces of."""
    texts = ["The baker opens her shop.", "rain", "again and " * 200, "Unheard-of words"]
    tokens = TokenEncoder(encoder, batch_size=2).encode(texts)
    for text in texts:
        states = encoder.encode(text, output_value="token_embeddings", convert_to_numpy=False)
        assert np.allclose(tokens[text].vectors, states.numpy(), atol=1e-9)
        assert tokens[text].special.nonzero()[0].tolist() == [0, len(states) - 1]
    last = tokens["Unheard-of words"]
    firsts = [word for word, begins in zip(last.words, last.starts_word, strict=True) if begins]
    assert firsts == ["Unheard", "-", "of", "words"]


@pytest.mark.parametrize("name", TOKEN_METRICS)
def test_static_vectors_are_refused(name, encoder):
    static = StaticEmbedding(encoder.tokenizer, embedding_weights=np.zeros((512, 4), dtype=np.float32))
    metric = make(name, encoder=SentenceTransformer(modules=[static], device="cpu"))
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
    rows = [*ROWS, Row("word " * 200, REFERENCES), Row("?", REFERENCES)]
    expected = [
        max(float(theirs.score([row.candidate], [reference])[2]) for reference in row.references) for row in rows
    ]
    assert make("bertscore", encoder=encoder).score(rows, []) == pytest.approx(expected, abs=1e-6)


def test_token_metrics_leave_the_encoder_as_it_is(metric, encoder, capsys):
    encoder.train()
    try:
        assert metric.score([Row("\u200b", ("a",))], []) is not None
        assert encoder[0].auto_model.training
    finally:
        encoder.eval()
    assert capsys.readouterr() == ("", "")


def means(model, pairs, batch_size=None):
    computed = dict(log_probabilities(model, pairs, batch_size))
    return [computed[pair].mean for pair in pairs]


LONG = "The work began in March. " * 40
PAIRS = [
    *((row.context, row.candidate) for row in ROWS),
    ("", ROWS[0].candidate),
    *((LONG, " ".join(["road"] * count)) for count in (1, 7, 30)),
    (LONG, "The road is busy." * 60),
    ("", "The road is busy." * 60),
]


def test_log_probabilities_are_those_of_a_plain_pass(causal, monkeypatch):
    model = CausalLanguageModel(*causal)
    expected = [-oracle_forms.surprisal(*causal, *pair) for pair in PAIRS]
    assert len(set(expected)) == len(PAIRS)
    assert means(model, PAIRS, 128) == pytest.approx(expected, rel=1e-9)
    assert means(model, [*PAIRS, *PAIRS], 3) == pytest.approx([*expected, *expected], rel=1e-9)
    assert [means(model, [pair], 128)[0] for pair in PAIRS] == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr(likelihood, "cache_bytes", lambda device: 1)  # whatever the memory
    assert means(model, PAIRS, 128) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("most", [1, 5, 1000])
def test_at_most_so_many_tokens_of_a_context_are_used(causal, most):
    model = CausalLanguageModel(*causal)
    cut = dict(log_probabilities(model, PAIRS, max_context_tokens=most))
    expected = [-oracle_forms.surprisal(*causal, *pair, most) for pair in PAIRS]
    assert [cut[pair].mean for pair in PAIRS] == pytest.approx(expected, rel=1e-9)
    whole = dict(log_probabilities(model, PAIRS))
    lengths = [len(model.codec.encode(context.strip())) if context.strip() else 0 for context, _ in PAIRS]
    assert [cut[pair].truncated for pair in PAIRS] == [
        length > most or whole[pair].truncated for length, pair in zip(lengths, PAIRS, strict=True)
    ]


def test_cached_prompts_are_not_run_again(causal, monkeypatch):
    model = CausalLanguageModel(*causal)
    contexts = ("The baker opens her shop.", "It will rain.", "He forgot his ticket at home.")
    pairs = [(context, text) for context in contexts for text in ("He said so.", "rain")]
    expected = means(model, [*pairs, ("", "rain")])
    lengths = [len(model.codec.encode(context)) - (not model.codec.adds_begin) for context in contexts]
    model.prompts = Prompts(sum(lengths[1:]) * model.token_bytes)
    fed, extend = [], model.extend

    def noting(cache, texts, *rows):
        fed.extend(map(len, texts))
        return extend(cache, texts, *rows)

    monkeypatch.setattr(model, "extend", noting)
    assert means(model, pairs[2:]) == means(model, pairs[2:]) == pytest.approx(expected[2:-1], rel=1e-9)
    assert sorted(fed) == sorted(lengths[1:])
    fed.clear()
    assert means(model, pairs[2:4]) == pytest.approx(expected[2:4], rel=1e-9)
    assert means(model, pairs[:2]) == pytest.approx(expected[:2], rel=1e-9)  # instead of the last one
    assert means(model, [*pairs[:4], ("", "rain")]) == pytest.approx([*expected[:4], expected[-1]], rel=1e-9)
    assert means(model, pairs[4:]) == pytest.approx(expected[4:-1], rel=1e-9)
    assert fed == [lengths[0], lengths[2]]


@pytest.mark.parametrize("name", ["perplexity", "context_perplexity"])
def test_scores_are_minus_perplexities(name, causal):
    metric = make(name, language_model=causal)
    assert metric.minimum == -causal[0].config.vocab_size
    expected = [
        -math.exp(
            -oracle_forms.log_probability(*causal, row.context * (name == "context_perplexity"), row.candidate)
        )
        for row in ROWS
    ]
    assert metric.score(ROWS, []) == pytest.approx(expected, rel=1e-6)


def cosine(vector, other):
    return vector @ other / np.linalg.norm(vector) / np.linalg.norm(other)


WORDS = ["<unk>", "the", "baker", "opens", "her", "shop", "rain", "noon", "children", "river"]


@pytest.fixture(scope="module")
def word_vectors():
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 8)).astype(np.float32)
    vectors[0] = 0  # unknown words say nothing, as in GloVe
    return vectors


def static_embedding(vectors, folder):
    tokenizer = Tokenizer(WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    return [StaticEmbedding(tokenizer, embedding_weights=vectors)]


def word_embeddings(vectors, folder):
    lines = (" ".join([word, *map(str, vector)]) for word, vector in zip(WORDS, vectors.tolist(), strict=True))
    path = folder / "glove.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    words = WordEmbeddings.from_text_file(
        str(path), tokenizer=WhitespaceTokenizer(stop_words=[], do_lower_case=True)
    )
    return [words, Pooling(8, "mean")]


def words_at_spaces(text):
    return [word.strip(string.punctuation) for word in text.split()]


@pytest.mark.parametrize(
    ("modules", "split"), [(static_embedding, re.compile(r"\w+").findall), (word_embeddings, words_at_spaces)]
)
def test_word_vectors_compare_texts_as_in_the_papers_row_with_glove(
    modules, split, word_vectors, causal, tmp_path
):
    SentenceTransformer(modules=modules(word_vectors, tmp_path), device="cpu").save(str(tmp_path / "glove"))
    models = Models(preset="mini", variant="plus", language_model=causal, store=False)
    settings = "variant=paper,planner=none,max_mask_ratio=0.2"
    rows = [Row("Her shop.", ("The baker opens her shop.",), "Children."), Row("Rain.", ("The river.",), "Noon.")]
    corpus = [text for row in rows for text in row.references]
    result = make_metric(f"mars[{settings},encoder={tmp_path / 'glove'}]", models).result(rows, corpus)

    def vector(text):
        return sum(word_vectors[WORDS.index(word)] for word in split(text.lower()) if word in WORDS)

    for row, scored in zip(rows, result.row_scores, strict=True):
        [reference] = scored.references
        cosines = [cosine(vector(text), vector(row.candidate)) for text in reference.augmented.texts]
        assert scored.score == pytest.approx(np.average(cosines, weights=[1, 0.8]), abs=1e-6)
