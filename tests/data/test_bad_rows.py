"""Every bad row is refused by every surface, with its place and before anything is loaded or kept."""

import pytest

import mars_metric
from mars_score.scorer import MarsScorer
from tests import jsonl, word_recall

GOOD = {"prediction": "a b", "reference": "a b", "context": "first", "sample": ["c"], "task": "text"}
SETTINGS = word_recall.SETTINGS
OPTIONS = [*word_recall.OPTIONS, "--samples-column", "sample", "--task-column", "task"]

ASK, REPLY, BRIEF = ({"role": role, "content": "Hello."} for role in ("user", "assistant", "system"))
PASSAGES = r'must be a string, got dict .* give retrieved passages as \{"passages": \["...", "..."\]\}'
# A column, what stands in its second row, and what the message says behind the place.
BAD_ROWS = [
    ("prediction", None, "must be a string, got NoneType"),
    ("prediction", 3, "must be a string, got int"),
    ("prediction", ["b", 3], "must be a string, got (int|list)"),
    ("reference", None, "must be a string, got NoneType"),
    ("reference", [], "is an empty list; give at least one"),
    ("reference", " ", "holds a blank reference"),
    ("reference", ["b", "\u200b"], "holds a blank reference"),
    ("reference", ["b", 3], "must be a string, got int"),
    ("context", 3, "must be a string, got int"),
    ("context", [ASK, REPLY], "ends with a message of the assistant; the candidate answers"),
    ("context", [BRIEF], "ends with a message of the system"),
    ("context", [ASK, BRIEF], r"\[1\] is a message of the system, which must be the first"),
    ("context", [{**ASK, "role": "x"}], r"\[0\]\[\"role\"\] must be one of .*, got 'x'"),
    ("context", [{"content": "x"}], r"\[0\] must be a message .* \(keys here: 'content'\)"),
    (
        "context",
        [{"role": "user"}],
        r"\[0\] must be a message with \"role\" and \"content\" \(keys here: 'role'\)",
    ),
    ("context", [{**ASK, "content": 3}], r"\[0\]\[\"content\"\] must be a string, got int"),
    ("context", {"messages": [ASK], "id": 3}, "must be a string, got dict .* give the list of messages alone"),
    ("context", {"contexts": ["a"], "title": "b"}, PASSAGES),
    ("context", {"question": "a", "documents": "text"}, PASSAGES),
    ("context", {"question": "a", "query": "b", "contexts": ["text"]}, PASSAGES),
    ("context", [ASK, "text"], "must be a string, got dict"),
    ("context", ["b", " ", "c"], r"\[1\] is blank; leave the turn out"),
    ("context", {"passages": "text"}, PASSAGES),
    ("context", {"passages": ["a", 3]}, r'\["passages"\]\[1\] must be a string, got int'),
    ("context", {"passages": ["a"], "title": "b"}, PASSAGES),
    ("context", {"passages": ["a"], "question": 3}, r'\["question"\] must be a string, got int'),
    ("context", {"passages": ["a"], "question": " "}, r'\["question"\] is blank; leave it out'),
    ("context", {"passages": None, "question": "a"}, PASSAGES),
    ("context", {}, "is an empty record; give it fields"),
    ("sample", 3, "must be a string, got int"),
    ("sample", ["b", " "], "holds a blank sample; leave it out"),
    ("task", "story", "must be one of 'text', 'summary', 'dialogue', 'data', got 'story'"),
]


def with_plurals(rows):
    return {f"{name}s": [row[name] for row in rows] for name in GOOD}


def score(rows, tmp_path, failing):
    MarsScorer("mini", **SETTINGS).score(**with_plurals(rows))


def compute(rows, tmp_path, failing):
    metric = mars_metric.Mars("fast", cache_dir=str(tmp_path), **SETTINGS)
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


def command(rows, tmp_path, failing):
    path = jsonl.write(tmp_path / "rows.jsonl", rows)
    raise ValueError(failing("score", path, *OPTIONS))


def update(rows, tmp_path, failing):
    metric = pytest.importorskip("mars_score.integrations.torchmetrics").MarsScore("mini", **SETTINGS)
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


# Those that check columns as the scorer does are given a row of each column and type.
FEW = {(column, type(value)): (column, value, message) for column, value, message in BAD_ROWS}.values()
CASES = [(surface, *row) for surface in ("scorer", "command line") for row in BAD_ROWS]
CASES += [(surface, *row) for surface in ("evaluate", "torchmetrics") for row in FEW]


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
@pytest.mark.parametrize(("surface", "column", "value", "message"), CASES)
def test_bad_rows(surface, column, value, message, tmp_path, failing, word_models):
    refuse, place = SURFACES[surface]
    if surface == "torchmetrics":
        place = place.replace("{}s?", {"prediction": "preds", "reference": "target"}.get(column, f"{column}s"))
    with pytest.raises((TypeError, ValueError), match=f"{place.format(column)} ?{message}"):
        refuse([GOOD, {**GOOD, column: value}], tmp_path, failing)
    assert not word_models or surface in ("evaluate", "torchmetrics")  # where the good row was scored
