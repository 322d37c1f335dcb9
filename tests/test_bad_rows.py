"""Every bad row is refused by every surface, with its place and before anything is loaded or kept."""

import jsonl
import pytest
import word_recall
from bad_rows import BAD_ROWS

import mars_metric
from mars_score.cli import main
from mars_score.scorer import MarsScorer

GOOD = {"prediction": "a b", "reference": "a b", "context": "first", "sample": ["c"]}


@pytest.fixture(autouse=True)
def scored(monkeypatch):
    return word_recall.install(monkeypatch)


def with_plurals(rows):
    return {f"{name}s": [row[name] for row in rows] for name in GOOD}


def score(rows, tmp_path, capsys):
    MarsScorer("mini", variant="fast").score(**with_plurals(rows))


def compute(rows, tmp_path, capsys):
    metric = mars_metric.Mars("fast", cache_dir=str(tmp_path))
    with pytest.raises((TypeError, ValueError)) as caught:
        metric.compute(**with_plurals(rows))
    assert metric.filelock is None
    assert not list(tmp_path.glob("**/*.arrow"))
    metric.add_batch(**with_plurals(rows[:1]))
    for add in (metric.add_batch, metric.compute):
        with pytest.raises(type(caught.value)):
            add(**with_plurals(rows))
    assert metric.compute() == {"mars": 1.0}  # the added row is still there
    raise caught.value


def command(rows, tmp_path, capsys):
    path = str(jsonl.write(tmp_path / "rows.jsonl", rows))
    assert main(["score", path, "--variant", "fast", "--samples-column", "sample"]) == 2
    raise ValueError(capsys.readouterr().err)


def update(rows, tmp_path, capsys):
    metric = pytest.importorskip("mars_score.integrations.torchmetrics").MarsScore("mini", variant="fast")
    columns = list(with_plurals(rows).values())
    metric.update(*(column[:1] for column in columns))
    with pytest.raises((TypeError, ValueError)) as caught:
        metric.update(*columns)
    assert metric.compute() == 1
    raise caught.value


SURFACES = {
    "scorer": (score, "{}s\\[1\\]"),
    "evaluate": (compute, "{}s\\[1\\]"),
    "command line": (command, "rows.jsonl:2: column '{}'"),
    "torchmetrics": (update, "{}s?\\[1\\]"),
}


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows(name, surface, tmp_path, capsys, scored):
    column, value, message = BAD_ROWS[name]
    refuse, place = SURFACES[surface]
    if surface == "torchmetrics":
        place = place.replace("{}s?", {"prediction": "preds", "reference": "target"}.get(column, f"{column}s"))
    with pytest.raises((TypeError, ValueError), match=f"{place.format(column)} ?{message}"):
        refuse([GOOD, {**GOOD, column: value}], tmp_path, capsys)
    assert not scored or surface in ("evaluate", "torchmetrics")  # where the good row was scored
