"""Variants plus and fast: against a plain form in float64, what they promise and store."""

import copy
import random

import numpy as np
import oracle
import oracle_forms
import pytest
import tiny_models
import torch
from jsonl import columns
from tokenizers import normalizers

from mars_score import MarsScorer
from mars_score.data.overlap import copied_share, windows
from mars_score.data.words import repetition
from mars_score.models.encoder import Encoded
from mars_score.models.tagger import WordAnalyser
from mars_score.scoring.embeddings import pack, unpack
from mars_score.settings import resolve_settings

LONG = " ".join(tiny_models.TEXT.split() * 8)[:1200]
LATE, RIVER = "It was late and they won.", "By the river, where they waited for the train home."
CAR, GAME, END, TRAIN = (
    "Her old car broke down.",
    "They won the old game. It was late.",
    "Was it the end?\nI think so.",
    "It was late?\nThe old train came late.",
)
# Candidate, references, context, its task by its form, samples.
CASES = [
    (
        "She took a train.",
        ["She called a friend and waited.", "A truck took her home."],
        CAR,
        "story",
        ["She waited for a train.", LATE],
    ),
    ("They won the old game \u2014 \u4f60\u597d!", ["They did not win."], LONG, "summary", [RIVER]),
    (" ", ["Nobody came."], "It was late.", "story", []),
    ("She took a train.", ["The library closed early, so she took the train home after all."], "", "data", []),
    ("  The end.  ", ["Yes"], END, "dialogue", ["The ends.", LATE, "Yes"]),
    (f"{LATE} again!", ["q"], GAME, "story", ["They lost", "They won the old game.", RIVER]),
    ("They lost it.", ["They won the old game. They won."], GAME, "story", ["They lost", RIVER]),
    ("In the park", ["At the old museum, by the river.", "Nowhere"], "Where did they go?", "answer", []),
    ("They won the train.", ["Yes"], END, "dialogue", [LATE]),
    ("A train, their train: the last Train home.", ["She took the train home."], CAR, "story", [LATE]),
    ("They took a train home.", ["Nowhere", "She took the train home."], "inform(train=home)", "data", []),
    ("Yes. The old train came late, the old train!", ["No, it came early."], TRAIN, "dialogue", ["No."]),
    ("came late", ["No, it came early."], TRAIN, "dialogue", []),
    ("The old train came late. The old train came late!", ["No, it came early."], TRAIN, "dialogue", []),
]
ROWS = [case[:3] for case in CASES]
SAMPLES = [case[4] for case in CASES]


class Centre(torch.nn.Module):
    """Takes the mean of some texts off sentence vectors: a tiny encoder's are all alike."""

    def __init__(self, mean):
        super().__init__()
        self.register_buffer("mean", mean)

    def forward(self, features):
        return {**features, "sentence_embedding": features["sentence_embedding"] - self.mean}


@pytest.fixture(scope="module")
def models():
    encoder = tiny_models.tiny_encoder()
    encoder.append(Centre(encoder.encode(tiny_models.TEXT.split(), convert_to_tensor=True).mean(0)))
    writer = tiny_models.tiny_gpt2(seed=1, n_positions=256, initializer_range=0.04)
    return {"preset": "mini", "language_model": writer, "encoder": encoder, "dtype": "float64"}


@pytest.fixture(scope="module")
def infilled():
    """The oracle's infills so far: the cases that have some have the same."""
    return {}


@pytest.mark.parametrize("with_samples", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "fast"},
        {"variant": "plus"},
        {"variant": "plus", "max_mask_ratio": 0.6, "mask_ratio_step": 0.3},
        {"variant": "plus", "use_context": False},
        {"variant": "fast", "context_weight": 1.0},
        {"variant": "fast", "context_weight": 0.0},
        {"variant": "fast", "matching": "sentences", "context_weight": 0.3},
    ],
    ids=str,
)
def test_scores_equal_the_oracle(models, infilled, settings, with_samples):
    settings = {**models, **settings}
    resolved = resolve_settings(**settings)
    samples = SAMPLES if with_samples else None
    expected = []
    templates = oracle.oracle_templates(ROWS, resolved, WordAnalyser())
    for (candidate, _, context, task, of_row), of_references in zip(CASES, templates, strict=True):
        for template in (template for _, of_ratios in of_references for template in of_ratios):
            if (context, template) not in infilled:
                infilled[context, template] = oracle.augment(context, template, resolved).text
        texts = [[text, *(infilled[context, template] for template in made)] for text, made in of_references]
        task = task if resolved.use_context else "data"
        expected.append(oracle_forms.score(candidate, texts, context, resolved, task, of_row if samples else ()))
    scores = MarsScorer(batch_size=2, store=False, **settings).score(*columns(ROWS), samples=samples).scores
    assert scores == pytest.approx(expected, abs=1e-9)
    backwards = columns([*ROWS, *ROWS][::-1])
    again = MarsScorer(store=False, **settings).score(*backwards, samples=samples and [*samples, *samples][::-1])
    assert again.scores == pytest.approx([*expected, *expected][::-1], abs=1e-9)
    assert len({round(score, 6) for score in expected}) > 3


@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "fast"},
        {"variant": "plus"},
        {"variant": "plus", "context_weight": 0.9, "matching": "sentences"},
    ],
    ids=str,
)
def test_scores_without_references_equal_the_oracle(models, settings):
    scorer = MarsScorer(store=False, **settings, **models)
    candidates, _, contexts, tasks, samples = zip(*(case for case in CASES if case[2]), strict=True)
    for of_rows in (samples, [()] * len(samples)):
        result = scorer.score(candidates, contexts=contexts, samples=of_rows)
        rows = zip(candidates, contexts, tasks, of_rows, strict=True)
        expected = [oracle_forms.score(a, [], context, scorer.settings, *rest) for a, context, *rest in rows]
        assert result.scores == pytest.approx(expected, abs=1e-9)
    assert f"|variant:{settings['variant']}|references:0|" in str(result.signature)


def test_the_terms(models):
    result = MarsScorer(store=False, variant="plus", **models).score(*columns(ROWS), samples=SAMPLES)
    terms = [{term.name: term for term in row.terms} for row in result.rows]
    assert list(terms[0]) == ["references", "context", "samples", "likelihood", "repetition"]
    assert list(terms[4]) == ["references", "context", "samples", "repetition"]  # a dialogue
    assert list(terms[10]) == ["references", "sentences", "likelihood", "repetition"]  # data
    assert (terms[9]["repetition"].value, terms[9]["repetition"].weight) == (2 / 6, -0.3)
    for row, of_row, samples in zip(result.rows, result.to_dict()["rows"], SAMPLES, strict=True):
        assert row.score == pytest.approx(sum(term.value * term.weight for term in row.terms))
        assert [sample["text"] for sample in of_row["samples"]] == samples


def test_a_repeated_reference_counts_once(models):
    """Also of references that differ by whitespace alone, and with samples."""
    candidate, references, context, _, samples = CASES[0]
    rows = [[*references, *more] for more in ([], references[:1], [f" {references[1]}\n"] * 9)]
    scorer = MarsScorer(store=False, variant="plus", reference_aggregation="mean", **models)
    scores = scorer.score([candidate] * 3, rows, [context] * 3, samples=[samples] * 3).scores
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-12)


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 200, 201, 1234])
def test_windows_are_the_parts_of_the_oracle(count):
    words = [str(number) for number in range(count)]
    assert windows("\n ".join(words)) == oracle_forms.parts(" ".join(words))


@pytest.mark.parametrize("seed", range(100))
def test_what_is_copied_and_repeated(seed):
    draw = random.Random(seed)
    words = [*"abcdefgh", "Boat", "boat,", "the", "a\u2019s", *(f"word{number}" for number in range(seed % 9))]
    text, context = (" ".join(draw.choices(words, k=draw.randrange(most))) for most in (30, 300))
    text = " ".join([text, *context.split()[: seed % 15]])
    assert copied_share(text, context) == pytest.approx(oracle_forms.copied(text, context))
    assert repetition(text) == pytest.approx(oracle_forms.repeated(text))


def test_only_plus_reads_candidates_with_the_language_model(models, tmp_path):
    reports = []
    settings = {**models, "store": tmp_path, "progress": lambda *report: reports.append(report)}
    MarsScorer(variant="fast", **settings).score(*columns(ROWS))
    assert "likelihood" not in {stage for stage, *_ in reports}
    scores = MarsScorer(variant="plus", **settings).score(*columns([*ROWS, *ROWS])).scores
    read = {(context, candidate) for candidate, _, context, task, _ in CASES[:2] + CASES[3:] if task != "dialogue"}
    assert [report for report in reports if report[0] == "likelihood"][-1] == ("likelihood", *[len(read)] * 2)
    reports.clear()
    assert MarsScorer(variant="plus", **settings).score(*columns([*ROWS, *ROWS])).scores == scores
    assert not reports


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_embeddings_are_kept_as_they_are_used(kind, count):
    """Their directions; token vectors in eight bits unless they are in double; zeros stay zeros."""
    generator = np.random.default_rng(count)
    vector, tokens = generator.normal(size=6).astype(kind), generator.normal(size=(count, 6)).astype(kind)
    tokens[3:4] = 0
    lengths = np.linalg.norm(tokens, axis=1, keepdims=True)
    kept = unpack(pack(Encoded(vector, tokens, True, 0.25)), tokens=True)
    assert (kept.shortened, kept.unknown, kept.tokens.shape) == (True, 0.25, (count, 6))
    assert kept.vector == pytest.approx(vector / np.linalg.norm(vector), abs=1e-7)
    assert kept.tokens == pytest.approx(
        tokens / np.maximum(lengths, 1e-9), abs=1e-12 if kind is np.float64 else 5e-3
    )
    assert np.linalg.norm(kept.tokens, axis=1) == pytest.approx((lengths[:, 0] > 0).astype(float))
    without = unpack(pack(Encoded(vector)), tokens=False)
    assert (without.shortened, without.vector.tolist()) == (False, kept.vector.tolist())


def test_a_text_without_tokens_matches_itself_alone(models):
    tokenizer = copy.deepcopy(tiny_models.roberta_tokenizer())
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("~", "")
    encoder = tiny_models.tiny_encoder(tokenizer=tokenizer)
    scorer = MarsScorer(**{**models, "encoder": encoder}, variant="fast", use_context=False, store=False)
    rows = scorer.score(["~", "~", "A dog."], ["~", "A dog.", "~"]).rows
    assert [row.terms[0].value for row in rows] == [1, 0, 0]


def test_what_copying_adds_to_a_likelihood_is_limited(models):
    """This language model repeats words. Without references there is no limit."""
    writer = tiny_models.tiny_gpt2(n_positions=256, initializer_range=1.0)
    for block in writer[0].transformer.h:
        for layer in (block.attn.c_proj, block.mlp.c_proj):
            torch.nn.init.zeros_(layer.weight)
    scorer = MarsScorer(**{**models, "language_model": writer}, variant="plus", store=False)
    candidate, reference, context = "people", "Old people came.", "They met people people"
    given, alone = (oracle_forms.log_probability(*writer, text, candidate) for text in (context, ""))
    assert given - alone > 3
    for texts in ([[reference]], []):
        expected = oracle_forms.score(candidate, texts, context, scorer.settings, "data")
        result = scorer.score([candidate], texts or None, [context])
        assert result.scores == [pytest.approx(expected, abs=1e-9)]


def test_likelihoods_are_given_so_many_tokens_of_the_context(models, tmp_path):
    def scores(limit, store):
        settings = {"variant": "plus", "max_context_tokens": limit}
        return MarsScorer(store=store, **settings, **models).score(*columns(ROWS)).scores

    fresh = {limit: scores(limit, False) for limit in (2, 2048, None)}
    assert fresh[2048] == fresh[None] != fresh[2]
    for limit in (2, 2048, None, 2):  # kept ones are told apart
        assert scores(limit, tmp_path) == fresh[limit]
