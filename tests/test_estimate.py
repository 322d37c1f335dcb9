"""How long a run will take: by a clock that only scoring moves, and with tiny models."""

import json
import sys

import pytest

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.cli.estimate import lines
from mars_score.data.columns import Columns
from mars_score.runs import estimate as module
from mars_score.runs.estimate import Estimate, estimate
from mars_score.runs.input import Input
from mars_score.settings import MaskingSettings, resolve_settings
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime

LOADING, CONTEXT, CANDIDATE, KEPT = 5.0, 2.0, 0.5, 0.001  # seconds that the parts of the work take


def write(path, contexts, systems, references="She took the bus."):
    """Rows of several systems on the same contexts, one system after the other."""
    rows = [
        {
            "prediction": f"candidate {system} {number}",
            "reference": references,
            "context": f"In year {number} it rained.",
        }
        for system in range(systems)
        for number in range(contexts)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return rows


class Work:
    """Scoring that takes a known time: models are loaded once, a context is read once."""

    def __init__(self, kept=()):
        self.time, self.loaded = 0.0, False
        self.kept, self.contexts, self.scored = set(kept), set(), []

    def score(self, rows):
        for row in rows:
            self.scored.append(row)
            if row in self.kept:
                self.time += KEPT
                continue
            if not self.loaded:
                self.time, self.loaded = self.time + LOADING, True
            if row[2] not in self.contexts:
                self.time += CONTEXT
                self.contexts.add(row[2])
            self.time += CANDIDATE

    def clock(self):
        return self.time


def estimated(path, monkeypatch, work, keeps=None, workers=1):
    monkeypatch.setattr(
        module._Lookup, "keeps", lambda self, row: row in work.kept if keeps is None else keeps(row)
    )
    rows = Input(str(path), Columns("reference", "context", "prediction"), MaskingSettings(0.0))
    return estimate(rows, resolve_settings("mini", variant="plus"), Runtime(), work.score, workers, work.clock)


@pytest.mark.parametrize(("contexts", "systems"), [(40, 1), (40, 3), (1, 30), (400, 2)])
def test_a_run_takes_as_long_as_told(tmp_path, monkeypatch, contexts, systems):
    monkeypatch.setattr(module, "SECONDS", 60.0)
    write(tmp_path / "rows.jsonl", contexts, systems)
    work = Work()
    found = estimated(tmp_path / "rows.jsonl", monkeypatch, work)
    actual = LOADING + contexts * CONTEXT + contexts * systems * CANDIDATE
    assert found.seconds == pytest.approx(actual)
    assert (found.rows, found.kept, found.measured) == (contexts * systems, 0, len(work.scored))
    assert len({row[2] for row in work.scored}) <= max(9, contexts // 10)
    half = estimated(tmp_path / "rows.jsonl", monkeypatch, Work(), workers=2)
    assert half.seconds - half.loading == pytest.approx((found.seconds - found.loading) / 2)


def test_what_is_in_the_store_takes_less(tmp_path, monkeypatch):
    write(tmp_path / "rows.jsonl", 50, 2)
    found = estimated(
        tmp_path / "rows.jsonl", monkeypatch, work := Work(), lambda row: int(row[2].split()[2]) < 20
    )
    work.kept = {row for row in work.scored if int(row[2].split()[2]) < 20}
    assert found.kept == 0.4
    again = estimated(
        tmp_path / "rows.jsonl",
        monkeypatch,
        Work(work.kept),
        lambda row: row in work.kept or int(row[2].split()[2]) < 20,
    )
    assert again.new == pytest.approx(CONTEXT / 2 + CANDIDATE)
    assert again.old == pytest.approx(KEPT)


def test_slow_loading_is_not_taken_for_slow_scoring(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LOADING", 100.0)
    write(tmp_path / "rows.jsonl", 200, 1)
    found = estimated(tmp_path / "rows.jsonl", monkeypatch, Work())
    assert found.loading == pytest.approx(100)
    assert found.new == pytest.approx(CONTEXT + CANDIDATE)


def test_measuring_ends_in_time(tmp_path, monkeypatch):
    write(tmp_path / "rows.jsonl", 1000, 1)
    estimated(tmp_path / "rows.jsonl", monkeypatch, work := Work())
    assert module.SECONDS <= work.time < 2 * module.SECONDS + LOADING


def test_a_sample_of_contexts_has_all_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CONTEXTS", 30)
    monkeypatch.setattr(module, "ROWS_OF_CONTEXT", 3)
    rows = write(tmp_path / "rows.jsonl", 100, 4)
    path = str(tmp_path / "rows.jsonl")
    count, groups = module._sample(
        Input(path, Columns("reference", "context", "prediction"), MaskingSettings(0.0))
    )
    assert count == len(rows)
    assert len(groups) == 30
    assert {(len(group), size) for group, size in groups} == {(3, 4)}
    assert all(len({row[2] for row in group}) == 1 for group, _ in groups)


@pytest.mark.usefixtures("tiny_mini")
@pytest.mark.parametrize(
    "settings", [{"samples": 2}, {"samples": 2, "variant": "plus"}, {"variant": "paper", "max_mask_ratio": 0}]
)
def test_rows_that_were_scored_are_found_in_the_store(tmp_path, settings):
    rows = write(tmp_path / "rows.jsonl", 6, 2)
    scorer = MarsScorer("mini", store=tmp_path / "store", variant="plus", **settings)
    kept = [row for row in rows if int(row["context"].split()[2]) < 3]
    scorer.score(*([row[name] for row in kept] for name in ("prediction", "reference", "context")))
    lookup = module._Lookup(scorer.settings, Runtime(store=ResultStore(tmp_path / "store")))
    of_rows = [(row["prediction"], (row["reference"],), row["context"]) for row in rows]
    assert [lookup.keeps(row) for row in of_rows] == [row in kept for row in rows]
    candidate, references, context = of_rows[0]
    assert lookup.keeps(("", references, context))
    assert not lookup.keeps(("another", references, context))
    assert not lookup.keeps((candidate, ("another",), context))


@pytest.mark.usefixtures("tiny_mini")
@pytest.mark.parametrize(
    "options",
    [
        ["--samples", "2"],
        ["--samples", "1", "--no-references"],
        ["--no-use-context"],
        ["--samples", "2", "--no-store"],
    ],
)
def test_the_command_scores_a_few_rows_and_writes_nothing(tmp_path, capsys, monkeypatch, options):
    monkeypatch.setattr(module, "FEWEST", 3)
    write(tmp_path / "rows.jsonl", 20, 1)
    out = tmp_path / "out.jsonl"
    command = ["score", str(tmp_path / "rows.jsonl"), "--preset", "mini", "--out", str(out), "--estimate"]
    assert main([*command, *options]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("about 0:0")
    assert " for 20 rows\nnew: 100% of the rows, " in shown
    assert "measured on 3 rows" in shown
    assert not out.exists()
    assert not list(tmp_path.glob("*out.jsonl*"))
    assert main([*command, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["estimate"]
    assert found["rows"] == 20
    assert found["seconds"] > 0
    by_context = not {"--no-store", "--no-use-context"} & set(options)  # without contexts all rows are one group
    assert found["kept"] == pytest.approx(3 / 20 if by_context else 0)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ('{"prediction": "a", "reference": "b"}', [], "rows.jsonl:1: column 'context' is missing"),
        ("", [], "no rows"),
        ("{}", ["--engine", "ray"], "--estimate measures this machine alone; leave --engine ray out"),
    ],
)
def test_faults(tmp_path, capsys, text, options, message):
    (tmp_path / "rows.jsonl").write_text(text)
    assert main(["score", str(tmp_path / "rows.jsonl"), "--estimate", *options]) == 2
    assert message in capsys.readouterr().err


def test_lines():
    found = Estimate(rows=12_345, kept=0.25, measured=42, loading=4.04, new=0.5, old=0.01, workers=2)
    assert lines(found) == [
        "about 0:38:54 for 12,345 rows with 2 workers, if they do not slow each other",
        "new: 75% of the rows, 2 per second",
        "in the store: 25% of the rows, 100 per second",
        "loading models: 4.0 s",
        "measured on 42 rows",
    ]
