"""Explanations: their sums are the scores, their words those of the texts, and their HTML holds no one else's."""

import json
from dataclasses import replace

import numpy as np
import pytest

import mars_metric
from mars_score.explanation import Explanation, Match, Word, page_of, words_of
from mars_score.models.encoder import SentenceEncoder
from mars_score.rows import Row, RowScore, Verdict
from mars_score.scorer import MarsScorer
from tests import jsonl, tiny_models

SENTENCES = ["The baker opens her shop.", "The children walk along the river to look at the boats."]
CONTEXT = " ".join(SENTENCES)
ROWS = {
    "predictions": ["They look at the boats, don't they?", "The mayor of the city walks.", "  "],
    "references": [["The boys look at the boats!", "A walk along the river."], "The children walk home.", "No."],
    "contexts": [CONTEXT] * 3,
}
SAMPLES = [["They walk home.", "The baker looks at the boats."], "The mayor walks.", []]
LONG = "The children walk along the river to look at the boats, and the baker opens her shop."
pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")


@pytest.fixture(scope="module")
def options(wide_models):
    return {"preset": "mini", "variant": "fast", **wide_models, "store": False}


@pytest.fixture(scope="module", params=["plus", "free", "paper"])
def result(request, options):
    if request.param == "paper":
        return MarsScorer(**{**options, "variant": "paper", "planner": "none"}).score(**ROWS, explain=True)
    rows = {**ROWS, "references": None} if request.param == "free" else ROWS
    return MarsScorer(**{**options, "variant": "plus"}).score(**rows, samples=SAMPLES, explain=True)


def test_the_parts_sum_to_the_score(result):
    for row, explanation in zip(result.row_scores, result.explanations, strict=True):
        assert explanation.score.score == row.score == sum(explanation.points.values())  # to the last digit
        assert [match.similarity for match in explanation.matches if match.kind == "reference"] == [
            reference.similarities[0] for reference in row.references
        ]
        for match in explanation.matches:
            if match.words:
                recall = sum(word.share * (word.similarity or 0) for word in match.words)
                assert recall == pytest.approx(match.similarity, abs=1e-12)
    assert bool(result.explanations[0].matches[0].words) == ("variant:paper" not in str(result.signature))
    blank = result.explanations[2]
    assert (blank.score.score, blank.score.terms, blank.matches) == (0.0, (), ())
    assert str(blank) == "0.0000  (blank candidate)"
    assert [explanation["score"] for explanation in json.loads(result.to_json())["explanations"]] == result.scores
    words = [word for explanation in result.explanations for match in explanation.matches for word in match.words]
    encoded = sum(word.similarity is not None for word in words)
    assert result._repr_html_().count('class="mars-word" tabindex="0"') == encoded


def test_aspects_are_shown(result):
    page = result._repr_html_()
    stored = json.loads(result.to_json())["explanations"]
    for row, explanation, one in zip(result.row_scores, result.explanations, stored, strict=True):
        assert explanation.score.aspects == row.aspects
        assert one["aspects"] == row.aspects._asdict()
        known = {name: value for name, value in row.aspects._asdict().items() if value is not None}
        for name, value in known.items():
            assert f"{name} {value:.2f}" in str(explanation)
        assert (str(row.aspects) in page) or not known
    assert page.count("aspects: ") == 2  # a blank candidate has none
    plain = replace(result, explanations=())._repr_html_()
    assert plain.count("aspects: ") == 2


def test_the_nearest_texts(options):
    result = MarsScorer(**options).score(**ROWS, samples=SAMPLES, explain=True)
    for text, row, explanation in list(zip(result.rows, result.row_scores, result.explanations, strict=True))[:2]:
        best = max(row.samples, key=lambda sample: sample.similarity)
        *_, sample, sentence = explanation.matches
        assert (sample.kind, sample.text, sample.similarity) == ("sample", best.text, best.similarity)
        own, *others = options["encoder"].encode([text.candidate, *SENTENCES], normalize_embeddings=True)
        cosines = np.array(others) @ own
        assert sentence.text == SENTENCES[int(np.argmax(cosines))]
        assert sentence.similarity == pytest.approx(float(max(cosines)), abs=1e-6)


@pytest.mark.parametrize("prompt", ["", "query: "])
def test_words_against_cosines_of_single_tokens(options, prompt):
    """The partner of each word, found anew from the encoder's own token vectors."""
    model = tiny_models.tiny_encoder(seed=4)
    model.prompts, model.default_prompt_name = {"p": prompt}, "p"
    encoder = SentenceEncoder(model)
    candidate, reference = "They look at the boats.", "Children look at boats."
    scorer = MarsScorer(**{**options, "encoder": model})
    words = scorer.score([candidate], [reference], [CONTEXT], explain=True).explanations[0].matches[0].words
    encoded = dict(encoder.encode([candidate, reference], tokens=True))
    one, other = encoded[candidate], encoded[reference]
    unit = [tokens.tokens / np.linalg.norm(tokens.tokens, axis=1, keepdims=True) for tokens in (one, other)]
    cosines = unit[1] @ unit[0].T
    spans = encoder.offsets([reference])[0]
    assert "".join(reference[start:end] for start, end in spans).replace(" ", "") == reference.replace(" ", "")
    ends = [end for _, end in spans]
    assert [word.text for word in words] == ["Children", "look", "at", "boats", "."]
    for word in words:
        span = range(word.start, word.start + len(word.text) + 1)
        tokens = [index for index, end in enumerate(ends) if end in span and end > word.start]
        assert word.similarity == pytest.approx(cosines[tokens].max(axis=1).mean(), abs=1e-12)
        assert word.share == len(tokens) / len(ends)
        strongest = cosines[max(tokens, key=lambda index: cosines[index].max())].argmax()
        start, end = encoder.offsets([candidate])[0][strongest]
        assert candidate[start:end].strip() in word.partner


@pytest.mark.parametrize("prompt", ["", "query: "])
def test_words_beyond_the_window_of_the_encoder(options, prompt):
    encoder = tiny_models.tiny_encoder(n_positions=12)
    encoder.prompts, encoder.default_prompt_name = {"p": prompt}, "p"
    scorer = MarsScorer(**{**options, "encoder": encoder})
    result = scorer.score(["The boats."], [LONG], [CONTEXT], explain=True)
    words = result.explanations[0].matches[0].words
    assert "".join(word.text for word in words) == LONG.replace(" ", "")
    assert (words[0].similarity is None, words[-1].similarity) == (False, None)
    assert "mars-unencoded" in result._repr_html_()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ünal's 3.5 km!", ["Ünal", "'", "s", "3", ".", "5", "km", "!"]),
        ("猫が好き。", ["猫", "が", "好", "き", "。"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("a_b  \n", ["a", "_", "b"]),
        ("", []),
    ],
)
def test_words(text, words):
    spans = list(words_of(text))
    assert [word for _, word in spans] == words
    assert all(text[start:].startswith(word) for start, word in spans)


def test_html_is_escaped():
    hostile = '"><script>alert(1)</script>'
    match = Match(hostile, hostile, 0.5, (Word(hostile, 0, 0.5, 1.0, hostile),))
    verdict = Verdict(hostile, 0.9, hostile, "reference")
    score = RowScore(0.5, contradicted=(verdict, verdict))
    page = page_of([Explanation(Row(hostile), score, (match, match, match))])
    assert "<script" not in page
    assert '""' not in page
    assert page.count('aria-description="&quot;&gt;&lt;script') == 3
    assert page.count("contradicts the reference &quot;&quot;&gt;&lt;script") == 2


def test_compute(options):
    metric = mars_metric.Mars(**options)
    assert list(metric.compute(**ROWS, explain=True)) == ["mars", "explanations"]
    assert "explanations" in metric.compute(**ROWS, detailed=True, explain=True)
    assert "explanations" not in metric.compute(**ROWS, detailed=True)


def test_the_command_explains_the_lowest_rows(named_models, tmp_path, run):
    names = ("prediction", "reference", "context")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    path = jsonl.write(tmp_path / "rows.jsonl", rows)
    command = ["score", path, "--encoder", named_models["encoder"], "--variant", "fast"]
    command += ["--entailment-model", named_models["entailment_model"], "--no-store", "--explain"]
    data = json.loads(run(*command, 2, "--json", "--chunk-size", 1, "--dtype", "float64")[1])
    lines = [explanation["line"] for explanation in data["explanations"]]
    assert lines == sorted((1, 2, 3), key=lambda line: data["scores"][line - 1])[:2]
    for explanation in data["explanations"]:
        points = sum(explanation["points"].values())
        assert points == explanation["score"] == data["scores"][explanation["line"] - 1]
    assert {f"line {line}" for line in (1, 2, 3)} <= set(run(*command)[1].splitlines())
    out = run(*command, 2)[1]
    assert "line 3\n0.0000 (blank candidate)" in out
    assert "reference 0." in out
    assert run(*command, 0)[0] == 2
    jsonl.write(path, [*rows, {**rows[0], "prediction": ROWS["predictions"]}])
    data = json.loads(run(*command, 6, "--json", "--chunk-size", 2)[1])
    assert sorted(explanation["line"] for explanation in data["explanations"]) == [1, 2, 3, 4, 4, 4]
    assert [explanation["score"] for explanation in data["explanations"]] == sorted(data["scores"])


def test_unsupported_sentences_are_told_once():
    """Those that are contradicted as well are told as such."""
    contradicted = Verdict("It was dry.", 0.95, "It rained.", "reference")
    unsupported = Verdict("We ate.", 0.03, "It rained.", "context", number=2)
    lacking = (Verdict("It was dry.", 0.01, "It rained.", "context"), unsupported)
    score = RowScore(0.2, contradicted=(contradicted,), unsupported=lacking)
    told = Explanation(Row("It was dry. We ate."), score)
    assert str(told).splitlines()[1:] == [
        "  contradicted: It was dry.",
        '      contradicts the reference "It rained." (0.95)',
        "  unsupported: We ate.",
        "      the context does not support it (0.03)",
        "      nearest: It rained.",
    ]
    page = told._repr_html_()
    assert "<b>unsupported</b> We ate." in page
    assert page.count("<b>contradicted</b> It was dry.") == page.count('class="mars-verdict ') - 1 == 1
