"""Scores of whole rows from the store: equal to computed ones, for every variant, in a process and over files."""

import json
import sqlite3
from contextlib import closing

import jsonl
import pytest
import tiny_models

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.data.validation import Row
from mars_score.scoring.result import RowScore
from mars_score.scoring.rows import KIND, ScoredRow, decode, encode, row_results
from mars_score.settings import resolve_settings
from mars_score.store.results import FILE, ResultStore

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
WORDS = tiny_models.TEXT.split()
ROW_KINDS = ("fast", "plus")  # rows of the others depend on each other, by IDF


def make_rows(count):
    """Rows with contexts of their own; the third is blank, the fourth repeats the first."""
    rows = [
        {
            "prediction": " ".join(WORDS[number : number + 6]),
            "reference": [" ".join(WORDS[number + 3 : number + 8]), " ".join(WORDS[number + 9 : number + 12])],
            "context": " ".join(WORDS[2 * number + 20 : 2 * number + 30]),
        }
        for number in range(count)
    ]
    rows[2]["prediction"], rows[3] = " ", rows[0]
    return rows


def columns(rows, free=False):
    return [
        [row["prediction"] for row in rows],
        None if free else [row["reference"] for row in rows],
        [row["context"] for row in rows],
    ]


@pytest.fixture
def make(named_models, tmp_path):
    def make_scorer(store=tmp_path / "kept", **settings):
        return MarsScorer("mini", store=store, **{"variant": "plus", **named_models, **settings})

    return make_scorer


def count(store):
    return {kind: number for kind, (number, _) in ResultStore(store).info().items() if number}


def keep_rows_alone(store):
    """Of what is in a store, so that computing a row would add vectors."""
    with closing(sqlite3.connect(store / FILE)) as db, db:
        db.execute("DELETE FROM entries WHERE kind != ?", (KIND,))


@pytest.fixture
def score(named_models, tmp_path, capsys):
    options = [part for name, value in named_models.items() for part in (f"--{name.replace('_', '-')}", value)]

    def run(rows, *more, store=tmp_path / "kept"):
        """What ``mars score --json --detailed`` says."""
        file = tmp_path / "rows.jsonl"
        jsonl.write(file, rows)
        where = ["--no-store"] if store is None else ["--store", str(store)]
        capsys.readouterr()
        argv = ["score", file, "--preset", "mini", "--variant", "plus", "--chunk-size", 4, "--json", "--detailed"]
        assert main([*map(str, [*argv, "--quiet", *options, *where, *more])]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize(
    ("variant", "free"),
    [("plus", False), ("fast", True), pytest.param("paper", False, marks=pytest.mark.slow)],
)
def test_kept_rows_are_as_fresh_ones(variant, free, make, score, tmp_path):
    rows = make_rows(6)
    data = columns(rows, free)
    samples = 2 if data[1] else 1
    settings = {
        "variant": variant,
        **({"sample_count": samples} if variant in ROW_KINDS else {"mask_ratio_step": 0.6}),
    }
    if variant == "paper":
        settings["plan_iterations"] = 1
    fresh = make(store=False, **settings).score(*data)
    first = make(**settings).score(*data)
    file_rows = [{name: row[name] for name in row if data[1] or name != "reference"} for row in rows]
    more = [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", value)]
    more += [] if data[1] else ["--no-references"]
    of_file = score(file_rows, *more, store=None)
    assert score(file_rows, *more, store=tmp_path / "file") == of_file
    rows_alone = {KIND: 5} if variant in ROW_KINDS else {}
    assert count(tmp_path / "kept").get(KIND) == rows_alone.get(KIND)
    keep_rows_alone(tmp_path / "kept")
    kept = make(**settings).score(*data)
    assert not rows_alone or count(tmp_path / "kept") == rows_alone
    assert score(file_rows, *more, store=tmp_path / "file") == of_file
    for result in (first, kept):
        assert result.to_dict() == fresh.to_dict()
        assert result.rows == fresh.rows
        assert result.texts == fresh.texts


def test_rows_are_kept_by_files_for_processes_and_the_other_way(make, score, tmp_path):
    rows = [row for row in make_rows(8) if row["prediction"].strip()]
    of_file = score(rows)
    keep_rows_alone(tmp_path / "kept")
    assert make().score(*columns(rows)).scores == of_file["scores"]
    assert score(rows[:4])["scores"] == of_file["scores"][:4]
    assert set(count(tmp_path / "kept")) == {KIND}


CHANGES = [
    {"variant": "fast"},
    {"sample_count": 3},
    {"sample_count": 2, "sample_seed": 1},
    {"sample_count": 2, "sample_weight": 0.1},
    {"task": "story"},
    {"context_weight": 0.4},
    {"repetition_penalty": 0.0},
    {"reference_aggregation": "mean"},
    {"strip_urls_hashtags": True},
    {"dtype": "float32"},
    {"encoder": "language_model"},
    {"language": "de"},
    {"max_mask_ratio": 0.6, "idf_corpus": ["a"]},
    {"max_mask_ratio": 0.6, "idf_corpus": ["b"]},
    {"use_context": False},
]


def test_a_key_is_made_of_all_that_a_score_depends_on(named_models):
    row = Row("a candidate", ("a reference",), "a context")
    keys = set()
    for change in ({}, *CHANGES):
        models = {**named_models, **change}
        models["encoder"] = named_models.get(models["encoder"], models["encoder"])  # another folder
        keys.add(row_results(resolve_settings("mini", **{"variant": "plus", **models})).key(row))
    assert len(keys) == 1 + len(CHANGES)
    key = row_results(resolve_settings("mini", variant="plus", **named_models)).key
    others = [
        row._replace(candidate="a candidat"),
        row._replace(references=("a", "reference")),
        row._replace(context=""),
        row._replace(references=()),
        row._replace(samples=("a sample",)),
        row._replace(references=("a reference", "a sample")),
        row._replace(references=(), samples=("a reference",)),
    ]
    assert len({key(one) for one in (row, *others)}) == 1 + len(others)


def test_rows_without_a_key(named_models):
    assert row_results(resolve_settings("mini", max_mask_ratio=0.6, variant="plus", **named_models)).common is None
    assert row_results(resolve_settings("base", variant="plus")).common is None  # its models were never downloaded


def test_numbers_are_kept_to_the_last_digit():
    row = ScoredRow(RowScore(0.1 + 0.2, ()), (True, *[False] * 8))
    assert decode(encode(row)) == row
