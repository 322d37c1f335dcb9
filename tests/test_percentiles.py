"""Percentiles: where a score stands among rated candidates; none where scores of another kind stand there."""

import json
from dataclasses import replace
from itertools import pairwise
from statistics import fmean as mean

import numpy as np
import pytest

from mars_score import percentiles
from mars_score.percentiles import Percentile, find_percentiles, settings_digest
from mars_score.presets import PRESETS
from mars_score.rows import TASKS, Row, RowScore, Term
from mars_score.scorer import MarsScorer
from mars_score.settings import resolve_settings
from mars_score.signature import make_signature
from research import percentiles as script
from research.sets import read_sets
from tests import jsonl

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
RATINGS = [[0.1, 0.0, 0.2], [0.5, 0.4, 0.6], [0.9, 0.8, 1.0]]
QUANTILES = [0.0, 0.2, 0.2, 0.4, 1.0]
ROW = Row("a", ("b",), "c")


def signature_of(preset="mini", variant="fast", **settings):
    return make_signature(resolve_settings(preset, variant, **settings), [1])


def scored(score, notices=frozenset()):
    return RowScore(score, (Term("references", score, 1.0),), notices=notices)


# In German is all of a row, its candidate, or its context and references.
GERMAN = [
    ("Am Freitag.", "Sie kommt am Freitag.", "Wann kommt sie? Sie hat heute keine Zeit."),
    ("Sie kommt erst am Freitag.", "She comes on Friday.", "When will she come? She has no time today."),
    ("On Friday.", "Sie kommt am Freitag.", "Wann kommt sie? Sie hat heute keine Zeit."),
]


@pytest.fixture
def tell(monkeypatch, tmp_path):
    """Lets percentiles be read from tables for preset "mini" by variant."""

    def write(tables):
        path = tmp_path / "percentiles.json"
        path.write_text(json.dumps({"mini": tables}), encoding="utf-8")
        monkeypatch.setattr(percentiles, "FILE", path)
        percentiles._tables.cache_clear()

    yield write
    percentiles._tables.cache_clear()


@pytest.fixture
def known(tell, tiny_mini):
    """There is a table for texts of `fast`."""
    table = {"scores": QUANTILES, "ratings": RATINGS}
    forms = {"with references": {"text": table}, "without references": {}}
    tell({"fast": {"settings": settings_digest(signature_of()), **forms}})


@pytest.mark.parametrize(
    ("score", "rank", "fifth"),
    [(-1, 0, 0), (0, 0, 0), (0.1, 12.5, 0), (0.2, 25, 0), (0.3, 62.5, 1), (0.4, 75, 2), (1, 100, 2), (2, 100, 2)],
)
@pytest.mark.usefixtures("known")
def test_ranks_and_ratings(score, rank, fifth):
    assert find_percentiles([ROW], [scored(score)], signature_of()) == [
        Percentile(pytest.approx(rank), *RATINGS[fifth])
    ]


@pytest.mark.parametrize(
    ("row", "score"),
    [
        (replace(ROW, candidate=""), RowScore(0.0)),
        (replace(ROW, context=""), scored(0.3)),
        (replace(ROW, samples=("d",)), scored(0.3)),
        (replace(ROW, task="summary"), scored(0.3)),
        (replace(ROW, references=()), scored(0.3)),
        *((Row(candidate, (reference,), context), scored(0.3)) for candidate, reference, context in GERMAN),
    ],
)
@pytest.mark.usefixtures("known")
def test_rows_that_are_unlike_the_rated_ones_have_none(row, score):
    places = find_percentiles([ROW, row], [scored(0.3), score], signature_of())
    assert [place is None for place in places] == [False, True]


@pytest.mark.parametrize(
    ("preset", "settings", "is_known"),
    [
        ("mini", {}, True),
        ("mini", {"dtype": "float64"}, True),
        ("mini", {"task": "text"}, True),
        ("mini", {"language_model": "another/model"}, False),  # which is no preset's, though `fast` has none
        ("mini", {"encoder": "another/model"}, False),
        ("mini", {"entailment_model": None}, False),
        ("mini", {"repetition_penalty": 0.25}, False),
        ("mini", {"window_words": 99}, False),
        ("mini", {"clean": True}, False),
        ("mini", {"variant": "plus"}, False),
        ("mini", {"variant": "paper", "max_mask_ratio": 0.0}, False),
        ("base", {}, False),
    ],
)
@pytest.mark.usefixtures("known")
def test_other_models_and_settings_have_none(preset, settings, is_known):
    places = find_percentiles([ROW], [scored(0.3)], signature_of(preset, **{"variant": "fast", **settings}))
    assert [place is not None for place in places] == [is_known]


@pytest.mark.usefixtures("known")
def test_constants_that_change_make_the_table_void():
    entries = dict(signature_of().entries)
    for name in ("context_weight", "copied_words", "learned"):
        signature = signature_of()
        object.__setattr__(signature, "entries", {**entries, name: "other"})
        assert find_percentiles([ROW], [scored(0.3)], signature) == [None]


def test_in_words():
    text = str(Percentile(62.4, 0.584, 0.52, 0.64))
    assert text.startswith("better than 62 of 100 rated candidates")
    assert "0.58 [0.52, 0.64]" in text


# The table that is made of rated candidates


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """Files of rated candidates of three tasks."""
    return jsonl.write_rated(tmp_path_factory.mktemp("rated"), ("usr_topicalchat", "bagel", "summeval"), groups=6)


@pytest.fixture(scope="module")
def table(rated, tmp_path_factory, gpt2, encoder, nli):
    """The table that the script makes of them by the models of ``tiny_mini``."""
    folder = tmp_path_factory.mktemp("table")
    models = {"language_model": gpt2, "encoder": encoder, "entailment_model": nli}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MARS_STORE", str(folder / "store"))
        patch.setitem(PRESETS, "mini", models)
        patch.setattr(script, "FILE", folder / "percentiles.json")
        patch.setattr("sys.argv", ["percentiles", *rated, "--features", str(folder / "features.json")])
        script.main()
    return json.loads((folder / "percentiles.json").read_text(encoding="utf-8"))["mini"]


@pytest.fixture
def made(table, tell, tiny_mini):
    """The table of rated candidates is known."""
    tell(table)


@pytest.mark.parametrize(("variant", "has_references"), [("plus", True), ("fast", False)])
@pytest.mark.usefixtures("made")
def test_the_rated_candidates_themselves(rated, variant, has_references):
    """Each has about as many below it as there are, and the mean rating of its neighbours."""
    rows, human = [], []
    for rated_set in read_sets(rated):
        rows += rated_set.rows if has_references else [replace(row, references=()) for row in rated_set.rows]
        human += [(rating - 1) / 4 for rating in rated_set.ratings]
    scorer = MarsScorer("mini", variant=variant)
    scores = scorer.row_scores(rows)
    places = find_percentiles(rows, scores, make_signature(scorer.settings, [1]))
    for task in ("dialogue", "data", "summary"):
        indices = [index for index, row in enumerate(rows) if row.task == task]
        values = [scores[index].score for index in indices]
        for index in indices:
            assert places[index].rank == pytest.approx(
                100 * np.mean(np.array(values) < scores[index].score), abs=8
            )
            assert places[index].low <= places[index].rating <= places[index].high
        overall = mean(human[index] for index in indices)
        assert mean(places[index].rating for index in indices) == pytest.approx(overall, abs=0.05)


@pytest.mark.usefixtures("made")
def test_results_hold_them():
    rows = [["They sleep on ship 3.", " "]], ["They stay on ship number 3."], ["The 3 sailors stay on board."]
    result = MarsScorer("mini", variant="fast").score(*rows, tasks="summary")
    first, blank = result.percentiles
    assert blank is None
    assert first is not None
    for details in (result.to_records(), result.to_dict()["rows"]):
        assert [record["percentile"] for record in details] == [first._asdict(), None]
    assert json.loads(result.to_json())["rows"][0]["percentile"] == first._asdict()
    assert result.to_pandas()["percentile.rank"][0] == first.rank


def test_of_the_script_by_hand():
    """Two sets, of which one has all low scores and ratings."""
    low, high = (np.linspace(0, 0.4, 10), np.zeros(10)), (np.linspace(0.6, 1, 10), np.ones(10))
    table = script.of_task([low, high])
    assert (table["candidates"], table["sets"]) == (20, 2)
    assert table["scores"][:: script.STEPS] == [0, 1]
    assert table["scores"] == sorted(table["scores"])
    assert [rating for rating, _, _ in table["ratings"]] == [0, 0, 0.5, 1, 1]
    assert table["ratings"][2][1:] == [0, 1]  # A set may be drawn twice, and the other one not.


@pytest.mark.usefixtures("made")
def test_the_command_line(tmp_path, run):
    """Its line has the means of the rows that have a percentile, if these are ten at least."""
    candidates = [*["They sleep on ship 3.", "Who stays?"] * 5, " "]
    rows = [
        {"prediction": candidate, "reference": "They stay.", "context": "The sailors stay."}
        for candidate in candidates
    ]
    path = jsonl.write(tmp_path / "rows.jsonl", rows)
    command = ["score", path, "--preset", "mini", "--variant", "fast", "--task", "summary"]
    scorer = MarsScorer("mini", variant="fast")
    places = scorer.score(candidates, ["They stay."] * 11, ["The sailors stay."] * 11, tasks="summary").percentiles
    means = Percentile(*map(mean, zip(*places[:10], strict=True)))
    assert places[0] != places[1]
    assert f"on average (10 of 11 rows) {means}" in run(*command)[1].splitlines()
    few = jsonl.write(tmp_path / "few.jsonl", rows[1:])
    assert "rated candidates" not in run("score", few, *command[2:])[1]
    details = json.loads(run(*command, "--json", "--detailed")[1])["rows"]
    assert [record["percentile"] for record in details] == [
        *(pytest.approx(place._asdict(), abs=1e-4) for place in places[:10]),
        None,
    ]
    assert "rated candidates" not in run(*command, "--repetition-penalty", "0")[1]
    assert run(*command, "--out", path)[0] == 0  # in the place of the rows


# The table that ships


@pytest.mark.usefixtures("presets_as_they_are")
@pytest.mark.parametrize("preset", ["mini", "medium"])
@pytest.mark.parametrize("variant", ["plus", "fast"])
def test_the_shipped_table_is_of_the_models_and_constants_of_today(preset, variant):
    """Else nobody has percentiles; python -m research.percentiles makes it anew."""
    row, score = replace(ROW, task="dialogue"), scored(0.3)
    (place,) = find_percentiles([row], [score], signature_of(preset, variant))
    assert place is not None
    table = json.loads(percentiles.FILE.read_text(encoding="utf-8"))[preset][variant]
    for form in ("with references", "without references"):
        assert set(table[form]) == set(TASKS)
        for quantiles in table[form].values():
            assert all(low <= high for low, high in pairwise(quantiles["scores"]))
            assert all(0 <= low <= rating <= high <= 1 for rating, low, high in quantiles["ratings"])
            assert quantiles["candidates"] > 100


def test_no_text_is_in_the_shipped_table():
    def texts(value):
        if isinstance(value, dict):
            return {*value, *(text for part in value.values() for text in texts(part))}
        return {text for part in value for text in texts(part)} if isinstance(value, list) else {value}

    known = {*TASKS, "mini", "medium", "plus", "fast", "with references", "without references"}
    known |= {"settings", "scores", "ratings", "candidates", "sets"}
    tables = json.loads(percentiles.FILE.read_text(encoding="utf-8"))
    digests = {table["settings"] for variants in tables.values() for table in variants.values()}
    assert {text for text in texts(tables) if isinstance(text, str)} == known | digests
    assert all(len(digest) == 16 for digest in digests)
