"""Explanations: their sums are the scores, their words those of the texts, and their HTML holds no one else's."""

import json

import numpy as np
import pytest
import tiny_models

import mars_metric
from mars_score.models.engine.encoder import SentenceEncoder
from mars_score.scorer import MarsScorer
from mars_score.scoring.explain.explainer import words_of
from mars_score.scoring.explain.explanation import Explanation, Match, Word, whole_page

CONTEXT = "The baker opens her shop. The children walk along the river to look at the boats."
ROWS = (
    ["They look at the boats, don't they?", "The mayor of the city walks.", "  "],
    [["The boys look at the boats!", "A walk along the river."], "The children walk home.", "Nobody came."],
    [CONTEXT, CONTEXT, CONTEXT],
)


pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")


@pytest.fixture(scope="module")
def options():
    """Tiny models, with samples of a language model that reads the context to its end."""
    return {
        "preset": "mini",
        "variant": "fast",
        "language_model": tiny_models.tiny_gpt2(seed=1, n_positions=256),
        "encoder": tiny_models.tiny_encoder(seed=4),
        "dtype": "float64",
        "sample_count": 3,
        "store": False,
    }


@pytest.fixture(scope="module", params=["plus", "infills", "paper"])
def result(request, options):
    settings = {
        "plus": {"variant": "plus"},
        "infills": {"max_mask_ratio": 0.6, "sample_count": 0},
        "paper": {"variant": "paper", "planner": "none", "sample_count": 0},
    }[request.param]
    settings = {**options, **settings}
    return MarsScorer(**settings).score(*ROWS, explain=True)


def test_the_parts_sum_to_the_score(result):
    for row, one in zip(result.rows, result.explanations, strict=True):
        assert one.score == row.score == sum(one.points.values())  # to the last digit
        assert [match.similarity for match in one.matches if match.kind == "reference"] == [
            reference.similarities[0] for reference in row.references
        ]
        for match in one.matches:
            if match.words:
                recall = sum(word.share * word.similarity for word in match.words)
                assert recall == pytest.approx(match.similarity, abs=1e-12)
    assert any(one.matches for one in result.explanations)
    assert bool(result.explanations[0].matches[0].words) == ("variant:paper" not in str(result.signature))


def test_a_blank_candidate_has_no_explanation(result):
    blank = result.explanations[2]
    assert (blank.score, blank.terms, blank.matches, str(blank)) == (0.0, (), (), "0.0000  (blank candidate)")


def test_nothing_is_explained_unless_asked_for(options):
    result = MarsScorer(**options).score(*ROWS)
    assert result.explanations == ()
    assert "explanations" not in result.to_dict()


def test_the_nearest_texts(options):
    writer = tiny_models.tiny_writer(n_positions=256)
    result = MarsScorer(**{**options, "language_model": writer}).score(*ROWS, explain=True)
    encoder = options["encoder"]
    for text, row, one in zip(result.texts, result.rows, result.explanations, strict=True):
        if not row.terms:
            continue
        best = max(row.samples, key=lambda sample: sample.similarity)
        *_, sample, sentence = one.matches
        assert (sample.kind, sample.text, sample.similarity) == ("sample", best.text, best.similarity)
        sentences = ["The baker opens her shop.", "The children walk along the river to look at the boats."]
        cosines = (lambda vectors: vectors[1:] @ vectors[0])(
            encoder.encode([text.candidate, *sentences], normalize_embeddings=True)
        )
        assert sentence.text == sentences[int(np.argmax(cosines))]
        assert sentence.similarity == pytest.approx(float(max(cosines)), abs=1e-6)


def test_words_against_cosines_of_single_tokens(options):
    """The partner of each word, found anew from the encoder's own token vectors."""
    encoder = SentenceEncoder(options["encoder"])
    candidate, reference = "They look at the boats.", "Children look at boats."
    explained = MarsScorer(**options).score([candidate], [reference], [CONTEXT], explain=True).explanations[0]
    one, other = encoder.encode([candidate, reference], tokens=True)
    unit = [tokens.tokens / np.linalg.norm(tokens.tokens, axis=1, keepdims=True) for tokens in (one, other)]
    cosines = unit[1] @ unit[0].T
    ends = [end for _, end in encoder.offsets([reference])[0]]
    words = explained.matches[0].words
    assert [word.text for word in words] == ["Children", "look", "at", "boats", "."]
    for word in words:
        span = range(word.start, word.start + len(word.text) + 1)
        tokens = [index for index, end in enumerate(ends) if end in span and end > word.start]
        assert word.similarity == pytest.approx(cosines[tokens].max(axis=1).mean(), abs=1e-12)
        assert word.share == len(tokens) / len(ends)
        strongest = cosines[max(tokens, key=lambda index: cosines[index].max())].argmax()
        start, end = encoder.offsets([candidate])[0][strongest]
        assert candidate[start:end].strip() in word.partner


def test_offsets_of_a_prompt_and_a_cut_text():
    encoder = SentenceEncoder(tiny_models.tiny_encoder(n_positions=12))
    text = "The children walk along the river to look at the boats, and the baker opens her shop."
    for prompt in ("", "query: "):
        encoder.model.prompts, encoder.model.default_prompt_name = {"p": prompt}, "p"
        encoder.__dict__.pop("_prompt", None)
        offsets, vectors = encoder.offsets([text])[0], encoder.encode([text], tokens=True)[0].tokens
        assert len(offsets) == len(vectors) < 12
        assert offsets[0][0] == 0
        read = "".join(text[start:end] for start, end in offsets)
        assert read.replace(" ", "") == text[: offsets[-1][1]].replace(" ", "")


def test_words_of_the_text_that_the_encoder_does_not_read(options):
    short = {**options, "encoder": tiny_models.tiny_encoder(n_positions=12), "sample_count": 0}
    reference = "The children walk along the river to look at the boats, and the baker opens her shop."
    result = MarsScorer(**short).score(["The boats."], [reference], [CONTEXT], explain=True)
    words = result.explanations[0].matches[0].words
    assert "".join(word.text for word in words) == reference.replace(" ", "")
    assert (words[0].similarity is None, words[-1].similarity) == (False, None)
    assert "mars-unread" in result._repr_html_()


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
    found = list(words_of(text))
    assert [word for _, word in found] == words
    assert all(text[start:].startswith(word) for start, word in found)


def test_json_and_html(result):
    data = json.loads(result.to_json())["explanations"]
    assert [one["score"] for one in data] == result.scores
    page = result._repr_html_()
    assert page.count("<section>") == 3
    assert page.count('class="mars-word" tabindex="0"') == sum(
        len(match.words) for one in result.explanations for match in one.matches
    )


def test_html_is_escaped():
    hostile = '"><script>alert(1)</script>'
    word = Word(hostile, 0, 0.5, 1.0, hostile)
    match = Match(hostile, hostile, 0.5, (word,))
    page = whole_page([Explanation(hostile, 0.5, (), (match, match, match))])
    assert "<script" not in page
    assert '""' not in page
    assert page.count('aria-description="&quot;&gt;&lt;script') == 3


def test_compute(options):
    settings = {name: value for name, value in options.items() if name != "preset"}
    metric = mars_metric.Mars(preset="mini", **settings)
    columns = dict(zip(("predictions", "references", "contexts"), ROWS, strict=True))
    found = metric.compute(**columns, explain=True)
    assert list(found) == ["mars", "explanations"]
    assert [sum(one["points"].values()) for one in found["explanations"]] == [
        one["score"] for one in found["explanations"]
    ]
    assert "explanations" in metric.compute(**columns, detailed=True, explain=True)
    assert "explanations" not in metric.compute(**columns, detailed=True)


def test_the_command_explains_the_lowest_rows(named_models, tmp_path, capsys):
    from mars_score.cli import main

    path = tmp_path / "rows.jsonl"
    names = ("prediction", "reference", "context")
    path.write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in zip(*ROWS, strict=True)))
    options = ["--variant", "fast", "--sample-count", "0", "--no-store"]
    command = ["score", str(path), "--encoder", named_models["encoder"], *options]
    assert main([*command, "--explain", "2", "--json", "--chunk-size", "1", "--dtype", "float64"]) == 0
    data = json.loads(capsys.readouterr().out)
    lines = [one["line"] for one in data["explanations"]]
    assert lines == sorted((1, 2, 3), key=lambda line: data["scores"][line - 1])[:2]
    for one in data["explanations"]:
        assert sum(one["points"].values()) == one["score"] == data["scores"][one["line"] - 1]
    assert main([*command, "--explain"]) == 0
    assert {f"line {line}" for line in (1, 2, 3)} <= set(capsys.readouterr().out.splitlines())
    assert main([*command, "--explain", "2"]) == 0
    out = capsys.readouterr().out
    assert "line 3\n0.0000 (blank candidate)" in out
    assert "reference 0." in out
    assert main([*command, "--explain", "0"]) == 2
    several = {"prediction": list(ROWS[0]), "reference": ROWS[1][0], "context": ROWS[2][0]}
    path.write_text(path.read_text() + "\n" + json.dumps(several))
    assert main([*command, "--explain", "6", "--json", "--chunk-size", "2"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert sorted(one["line"] for one in data["explanations"]) == [1, 2, 3, 4, 4, 4]
    assert [one["score"] for one in data["explanations"]] == sorted(data["scores"])


def test_without_references(options):
    result = MarsScorer(**options).score(ROWS[0], None, ROWS[2], explain=True)
    one = result.explanations[0]
    assert one.score == result.scores[0] == sum(one.points.values())
    assert "context" in one.points
    assert one.matches[-1].text in CONTEXT
