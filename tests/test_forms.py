"""Variants plus and fast: against a plain form in float64, what they promise and store."""

import dataclasses
import gc

import numpy as np
import oracle
import oracle_forms
import pytest
import tiny_models
import torch
from jsonl import columns

from mars_score import MarsScorer
from mars_score.augment.augmented import AugmentedReference
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.augment.sampling.samples import Samples
from mars_score.data.overlap import WINDOW_WORDS, copied_share, windows
from mars_score.data.repetition import repetition
from mars_score.errors import MarsWarning
from mars_score.models.engine.cache import PromptMemory
from mars_score.models.engine.encoder import SentenceEncoder
from mars_score.scoring import evidence
from mars_score.scoring.embeddings import Embedding
from mars_score.scoring.form import Form
from mars_score.scoring.likelihood import Likelihood
from mars_score.scoring.terms import Similarities, score_row, token_recall
from mars_score.settings import resolve_settings

LONG = " ".join(f"{tiny_models.TEXT}".split() * 8)[:1200]
ROWS = [
    (
        "She took a train.",
        ["She called a friend and waited.", "A truck took her home."],
        "Her old car broke down.",
    ),
    ("They won the old game \u2014 \u4f60\u597d!", ["They did not win."], LONG),
    (" ", ["Nobody came."], "It was late."),
    ("She took a train.", ["The library closed early, so she took the train home after all."], ""),
    ("  The end.  ", ["Yes"], "Was it the end?\nI think so."),
    ("It was late, and they won the old game again!", ["q"], "They won the old game. It was late."),
    ("They lost it.", ["They won the old game. They won."], "They won the old game. It was late."),
    ("In the park", ["At the old museum, by the river.", "Nowhere"], "Where did they go?"),
    ("They won the train.", ["Yes"], "Was it the end?\nI think so."),
    ("A train, their train: the last Train home.", ["She took the train home."], "Her old car broke down."),
    ("They took a train home.", ["Nowhere", "She took the train home."], "inform(train=home)"),
    (
        "Yes. The old train came late, the old train!",
        ["No, it came early."],
        "It was late?\nThe old train came late.",
    ),
    ("came late", ["No, it came early."], "It was late?\nThe old train came late."),
]
LATE, RIVER = "It was late and they won.", "By the river, where they waited for the train home."
TASKS_AND_SAMPLES = {
    "Her old car broke down.": ("story", ("She waited for a train.", LATE)),
    LONG.strip(): ("summary", (RIVER,)),
    "It was late.": ("story", ()),
    "inform(train=home)": ("data", ()),
    "": ("data", ()),
    "It was late?\nThe old train came late.": ("dialogue", ("No.",)),
    "Was it the end?\nI think so.": ("dialogue", ("The end.", LATE, "Yes")),
    "They won the old game. It was late.": ("story", ("They lost", "They won the old game.", RIVER)),
    "Where did they go?": ("answer", ()),
}


class Centre(torch.nn.Module):
    """Takes the mean of some texts off sentence vectors: a tiny encoder's are all alike."""

    def __init__(self, mean):
        super().__init__()
        self.register_buffer("mean", mean)

    def forward(self, features):
        return {**features, "sentence_embedding": features["sentence_embedding"] - self.mean}


@pytest.fixture(scope="module")
def encoder():
    found = tiny_models.tiny_encoder()
    found.append(Centre(found.encode(tiny_models.TEXT.split(), convert_to_tensor=True).mean(0)))
    return found


@pytest.fixture(scope="module")
def models(encoder):
    return {
        "preset": "mini",
        "language_model": tiny_models.tiny_gpt2(seed=1, n_positions=256, initializer_range=0.04),
        "encoder": encoder,
        "dtype": "float64",
    }


@pytest.fixture(autouse=True)
def fixed_samples(monkeypatch):
    """What is drawn given a context."""

    def draw(model, request, settings):
        task, texts = TASKS_AND_SAMPLES[request.context]
        assert request.task == task
        return Samples(texts[: settings.sampling.sample_count])

    monkeypatch.setattr("mars_score.augment.sampling.samples.draw_samples", draw)


CASES = {
    "fast": {"variant": "fast"},
    "fast and samples": {"variant": "fast", "sample_count": 3},
    "plus": {"variant": "plus"},
    "plus and samples": {"variant": "plus", "sample_count": 2},
    "plus and infills": {"variant": "plus", "max_mask_ratio": 0.6, "mask_ratio_step": 0.3},
    "no context": {"variant": "plus", "use_context": False},
    "context alone": {"variant": "fast", "context_weight": 1.0},
    "no context term": {"variant": "fast", "context_weight": 0.0},
}


@pytest.fixture(scope="module")
def infilled():
    """The oracle's infills so far: the cases that have some have the same."""
    return {}


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def case(request, models, infilled):
    """Settings and the oracle's scores."""
    settings = {**models, **CASES[request.param]}
    resolved = resolve_settings(**settings)
    scores = []
    templates = oracle.oracle_templates(ROWS, resolved, WordAnalyser())
    for (candidate, _, context), of_references in zip(ROWS, templates, strict=True):
        for of_ratios in (ratios for _, ratios in of_references):
            for one in of_ratios:
                if (context, one) not in infilled:
                    infilled[context, one] = oracle.augment(context, one, resolved).text
        texts = [
            [reference, *(infilled[context, one] for one in of_ratios)] for reference, of_ratios in of_references
        ]
        task, samples = TASKS_AND_SAMPLES[context.strip() if resolved.use_context else ""]
        scores.append(
            oracle_forms.score(
                candidate, texts, context, resolved, task, samples[: resolved.sampling.sample_count]
            )
        )
    return settings, scores


def test_scores_equal_the_oracle(case):
    settings, scores = case
    found = MarsScorer(batch_size=2, store=False, **settings).score(*columns(ROWS)).scores
    assert found == pytest.approx(scores, abs=1e-9)
    backwards = MarsScorer(store=False, **settings).score(*columns([*ROWS, *ROWS][::-1])).scores
    assert backwards == pytest.approx([*scores, *scores][::-1], abs=1e-9)
    assert len({round(score, 6) for score in scores}) > 3


def test_the_form_with_sentences(models, monkeypatch):
    """The terms can be told to compare sentences."""
    settings = {**models, "variant": "fast", "matching": "sentences", "context_weight": 0.3}
    monkeypatch.setattr(oracle_forms, "recall", oracle.cosine)
    resolved = resolve_settings(**settings)
    expected = [
        oracle_forms.score(
            candidate, [[one] for one in references], context, resolved, TASKS_AND_SAMPLES[context.strip()][0]
        )
        for candidate, references, context in ROWS
    ]
    assert MarsScorer(store=False, **settings).score(*columns(ROWS)).scores == pytest.approx(expected, abs=1e-9)


def test_the_terms(models):
    result = MarsScorer(store=False, variant="plus", sample_count=4, **models).score(*columns(ROWS))
    terms = [{term.name: term for term in row.terms} for row in result.rows]
    sampled = ["references", "context", "samples"]
    assert list(terms[0]) == list(terms[6]) == [*sampled, "likelihood", "repetition"]
    assert list(terms[4]) == [*sampled, "repetition"]  # a dialogue
    assert list(terms[7]) == ["references", "context", "likelihood", "repetition"]  # a question: no samples drawn
    assert list(terms[10]) == ["references", "sentences", "likelihood", "repetition"]  # data
    assert (terms[9]["repetition"].value, terms[9]["repetition"].weight) == (2 / 6, -0.3)
    for row, by_name in zip(result.rows, terms, strict=True):
        assert row.score == pytest.approx(sum(term.value * term.weight for term in row.terms))
        if row.samples:
            drawn = TASKS_AND_SAMPLES[ROWS[result.rows.index(row)][2]][1]
            assert tuple(one.text for one in row.samples) == drawn
            assert 0 <= by_name["context"].weight <= 0.5 * 5.5 / (5.5 + 3)
    assert terms[4]["context"].weight == pytest.approx(0.5 * 1 / (1 + 3))  # a reference of one word
    assert terms[0]["samples"].weight == pytest.approx(0.2 * (terms[0]["context"].weight / 0.5) ** 2)
    assert 0 < terms[6]["context"].weight < 0.5 * 7 / (7 + 3) - 0.01  # a reference that is close to the context
    assert result.to_dict()["rows"][0]["samples"] == [dataclasses.asdict(one) for one in result.rows[0].samples]


def test_a_score_does_not_depend_on_other_rows(models):
    corpus = [reference for _, references, _ in ROWS for reference in references]
    scorer = MarsScorer(store=False, variant="plus", max_mask_ratio=0.4, idf_corpus=corpus, **models)
    together = scorer.score(*columns(ROWS)).scores
    assert [scorer.score(*columns([row])).score for row in ROWS] == pytest.approx(together, abs=1e-9)


@pytest.mark.parametrize("variant", ["plus", "paper"])
def test_a_repeated_reference_counts_once(models, variant):
    """Also of references that differ by whitespace alone, and with samples."""
    settings = {**models, "variant": variant, "sample_count": 2, "reference_aggregation": "mean"}
    if variant == "paper":
        settings |= {"max_mask_ratio": 0}
    (candidate, references, context), *_ = ROWS
    rows = [[*references, *more] for more in ([], references[:1], [f" {references[1]}\n"] * 9)]
    scores = MarsScorer(store=False, **settings).score([candidate] * 3, rows, [context] * 3).scores
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-12)


def test_what_masks_no_word_needs_no_pipeline_of_spacy(models, monkeypatch, tmp_path):
    def refuse(_):
        raise AssertionError("spaCy is asked for")

    monkeypatch.setattr(WordAnalyser, "pipeline", property(refuse))
    result = MarsScorer(store=tmp_path, variant="plus", **models).score(*columns(ROWS))
    assert result.signature.to_dict()["spacy_pipeline"] is None


def test_a_discarded_scorer_is_freed_at_once(models):
    """With the keys and values of the contexts that its language model has read."""

    def alive():
        return sum(isinstance(one, (MarsScorer, PromptMemory)) for one in gc.get_objects())

    gc.collect()
    before = alive()
    gc.disable()
    try:
        scorer = MarsScorer(store=False, variant="plus", **models)
        scorer.score(*columns(ROWS))
        assert alive() == before + 2
        del scorer
        assert alive() == before
    finally:
        gc.enable()


def test_recall_is_of_the_reference():
    """A longer candidate loses nothing, a longer reference does."""
    axes = np.eye(4)
    assert token_recall(axes[:3], axes[:2]) == 1
    assert token_recall(axes[:2], axes[:3]) == pytest.approx(2 / 3)
    assert token_recall(axes[:0], axes[:2]) == 0 == token_recall(axes[:2], axes[:0])


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 200, 201, 1234])
def test_windows_hold_all_words_and_are_about_equal(count):
    words = [str(number) for number in range(count)]
    found = windows("\n ".join(words))
    assert " ".join(found).split() == words
    assert len(found) == -(-count // WINDOW_WORDS)
    lengths = [len(one.split()) for one in found]
    assert not lengths or (max(lengths) - min(lengths) <= 1 and max(lengths) <= WINDOW_WORDS)
    assert found == oracle_forms.parts(" ".join(words))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("they won the old game", 1),
        ("They WON, the old: game!", 1),
        ("they won the old", 1),  # shorter than a run
        ("so they won the old game", 5 / 6),
        ("they won the game", 0),
        ("they won the new old game was late", 0),
        ("they won the old game was late", 5 / 7),
        ("it was late they won the old game", 5 / 8),
        ("...", 0),
        ("", 0),
    ],
)
def test_what_is_copied(text, share):
    context = "They won the old game. It was late."
    assert copied_share(text, context) == pytest.approx(share) == oracle_forms.copied(text, context)


def test_the_context_counts_where_it_is_nearest(models):
    """Words before and behind the window of the candidate do not matter."""
    scorer = MarsScorer(store=False, context_weight=1.0, variant="fast", **models)
    near = " ".join(["they won the game"] * 25)
    far = " ".join(["it was late"] * 25 + ["again"] * 25)
    alone, among = scorer.score(["they won the game"] * 2, ["a b c"] * 2, [near, f"{far} {near}"]).rows
    assert among.terms[1].value == pytest.approx(alone.terms[1].value, abs=1e-9)


def test_only_plus_reads_candidates_with_the_language_model(models, tmp_path):
    reports = []
    settings = {**models, "store": tmp_path, "progress": lambda *report: reports.append(report)}
    MarsScorer(variant="fast", **settings).score(*columns(ROWS))
    assert not [report for report in reports if report[0] == "likelihood"]
    cold = MarsScorer(variant="plus", **settings).score(*columns([*ROWS, *ROWS])).scores
    read = {(context.strip(), one.strip()) for one, _, context in ROWS if one.strip()}
    wanted = [pair for pair in read if TASKS_AND_SAMPLES[pair[0]][0] != "dialogue"]
    assert [report for report in reports if report[0] == "likelihood"][-1] == ("likelihood", *[len(wanted)] * 2)
    reports.clear()
    assert MarsScorer(variant="plus", **settings).score(*columns([*ROWS, *ROWS])).scores == cold
    assert not reports


def test_token_vectors_are_the_encoders(encoder):
    texts = ["She took a train.", "", "\u4f60\u597d a", "They won the old game again and again."]
    for text, one in zip(texts, SentenceEncoder(encoder).encode(texts, tokens=True), strict=True):
        expected = oracle_forms.token_vectors(encoder, text)
        for vector, other in zip(one.tokens, expected, strict=True):
            assert vector == pytest.approx(other.numpy(), abs=1e-9)
        [plain] = SentenceEncoder(encoder).encode([text])
        assert one.vector == pytest.approx(plain.vector, abs=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_embeddings_are_kept_as_they_are_used(kind, count):
    generator = np.random.default_rng(count)
    vector, tokens = generator.normal(size=6).astype(kind), generator.normal(size=(count, 6)).astype(kind)
    one = Embedding.of(vector, tokens, shortened=True)
    again = Embedding(one.packed, with_tokens=True)
    assert again == one
    assert again.shortened
    assert again.vector == pytest.approx(vector / np.linalg.norm(vector), abs=1e-7)
    assert again.tokens.shape == (count, 6)
    lengths = np.linalg.norm(tokens, axis=1, keepdims=True)
    assert again.tokens == pytest.approx(tokens / lengths, abs=1e-12 if kind is np.float64 else 5e-3)
    assert np.linalg.norm(again.tokens, axis=1) == pytest.approx(np.ones(count))
    without = Embedding.of(vector, shortened=False)
    assert without.vector == pytest.approx(again.vector)
    with pytest.raises(ValueError, match="without token vectors"):
        _ = without.tokens


def test_a_token_of_zeros_matches_nothing():
    tokens = np.array([[0.0, 0.0], [3.0, 4.0]])
    kept = Embedding.of(np.ones(2), tokens, shortened=False).tokens
    assert kept.tolist() == [[0, 0], [0.6, 0.8]]


def test_what_copying_adds_to_a_likelihood_is_limited():
    texts = ("She called them.", "She called.")
    read = {
        text: Embedding.of(np.ones(2), np.ones((1, 2)), shortened=False)
        for text in (*texts, "They met. She called.")
    }
    found = {
        "embed": read,
        "match": read,
        "likelihood": {("They met. She called.", "She called."): Likelihood(-1, -5, False)},
    }
    similarities = Similarities(found, Form.of(resolve_settings("base", "plus")))
    row = evidence.ScorableRow(
        "She called.", (AugmentedReference(texts[0], ()),), "They met. She called.", "story"
    )
    [likelihood] = [term for term in score_row(row, similarities).terms if term.name == "likelihood"]
    assert likelihood.value == -5 / 2 + 2.5


def test_a_likelihood_is_at_least_a_guess(models):
    """However unlikely a text is under these models, it is bounded."""
    scorer = MarsScorer(store=False, variant="plus", likelihood_weight=10, **models)
    row = scorer.score(["\u4f60\U0001f600\u202e\x00" * 5], ["They won the old game."], ["It was late."]).rows[0]
    bound = np.log(models["language_model"][0].config.vocab_size)
    assert -bound <= row.terms[-1].value <= bound


def test_likelihoods_are_given_so_many_tokens_of_the_context(models, tmp_path):
    def scores(most, store):
        settings = {"variant": "plus", "max_context_tokens": most}
        return MarsScorer(store=store, **settings, **models).score(*columns(ROWS)).scores

    fresh = {most: scores(most, False) for most in (2, 2048, None)}
    assert fresh[2048] == fresh[None] != fresh[2]
    for most in (2, 2048, None, 2):  # kept ones are told apart
        assert scores(most, tmp_path) == fresh[most]


def test_a_cut_context_is_told(models):
    far = " ".join(["it was late"] * 200)  # behind which the window is full
    with pytest.warns(MarsWarning, match="the end of the context"):
        result = MarsScorer(store=False, variant="plus", **models).score(
            ["They won.", "They won."], ["They did.", "They did."], [far, "It was late."]
        )
    assert any("1 of 2 rows (0)" in notice for notice in result.notices)


def test_repetition_is_of_long_words_near_each_other():
    assert repetition("The cat and the dog and the bird.") == 0
    assert repetition("A boat, a Boat, a boat!") == pytest.approx(2 / 3)
    assert repetition("It is so.") == repetition("") == 0
    far = " ".join(["boat", *(f"word{number}" for number in range(10)), "boat"])
    assert repetition(far) == 0
