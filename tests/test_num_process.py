"""evaluate's own distribution: each process adds its share of the rows, and process 0 scores them all."""

import evaluate
import pytest
from processes import in_processes
from torch import distributed

import mars_metric
from mars_score.scorer import MarsScorer

pytestmark = pytest.mark.slow

# References with nouns of different frequency over all rows, so that IDF decides what is masked.
ROWS = [
    ("She took a train home.", ["A friend sold the car to the town library."], "Her old car broke."),
    ("They won the game!", ["The bridge leads the friend to a shop.", "They lost the game in town."], ""),
    ("Nobody came.", ["The baker met a friend near the bridge."], "The library is near."),
    ("It rained.", ["A letter told the friend about the road."], "It was late."),
    ("He forgot his ticket.", ["The mayor lost a ticket and the friend."], "The musical begins at six."),
]
# Which process has which rows, how they are handed over, and settings at load: all, each differently, and how
# many rounds.
WITHOUT = {"settings": {"use_context": False}}
SHARES = {
    "uneven": {"rows": [[3], [4, 0, 2, 1]], "how": ["compute", "add"]},
    "interleaved": {"rows": [[0, 2, 4], [1, 3]], "how": ["add", "add_batch"]},
    "none in process 1": {"rows": [[0, 1, 2, 3, 4], []], "how": ["add", "add"]},
    "none in process 0": {"rows": [[], [0, 1, 2, 3, 4]], "how": ["add", "compute"]},
    "an empty batch": {"rows": [[0, 1, 2, 3, 4], []], "how": ["compute", "compute"]},
    "without contexts": {"rows": [[0, 2, 4], [1, 3]], "how": ["add", "compute"], **WITHOUT},
    "again and again": {"rows": [[0, 2, 4], [1, 3]], "how": ["add", "add"], "rounds": 2},
}


def columns(rows, settings):
    names = ["predictions", "references", "contexts"][: 3 if settings.get("use_context", True) else 2]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def give_and_compute(metric, rows, how, settings):
    given = columns(rows, settings)
    if how == "compute":
        return metric.compute(**given, detailed=True)
    if how == "add_batch":
        metric.add_batch(**given)
    else:
        for row in zip(*given.values(), strict=True):
            metric.add(**dict(zip(given, row, strict=True)))
    return metric.compute(detailed=True)


def score_shares(rank, folder, settings):
    """What each round of each of ``SHARES`` gives in this process, by name."""
    found = {}
    for number, (name, one) in enumerate(SHARES.items()):
        at_load = {**settings, **one.get("settings", {})}
        metric = evaluate.load(
            mars_metric.__file__,
            num_process=2,
            process_id=rank,
            experiment_id=f"share-{number}",
            cache_dir=folder,
            **at_load,
        )
        found[name] = []
        for _ in range(one.get("rounds", 1)):
            rows = [ROWS[row] for row in one["rows"][rank]]
            found[name].append(give_and_compute(metric, rows, one["how"][rank], at_load))
            distributed.barrier()
    return found


@pytest.fixture(scope="module")
def settings(named_models):
    """Settings that other processes can use too."""
    return {"preset": "mini", **named_models, "store": False, "max_mask_ratio": 0.4}


@pytest.fixture(scope="module")
def found(settings, tmp_path_factory):
    """What both processes got."""
    folder = tmp_path_factory.mktemp("processes")
    return in_processes(folder, score_shares, str(folder / "cache"), settings)


@pytest.mark.parametrize("name", SHARES)
def test_process_0_scores_all_rows_as_one_process_would(name, found, settings):
    one = SHARES[name]
    at_load = {**settings, **one.get("settings", {})}
    together = MarsScorer(**at_load).score(*columns(ROWS, at_load).values())
    alone = MarsScorer(**at_load).score(*columns(ROWS[:1], at_load).values())
    assert alone.score != pytest.approx(together.scores[0], abs=1e-9)  # IDF is counted over all rows
    rounds = one.get("rounds", 1)
    assert found[1][name] == [None] * rounds
    assert len(found[0][name]) == rounds
    order = [row for rows in one["rows"] for row in rows]
    for result in found[0][name]:
        assert result["mars"] == pytest.approx(together.score, abs=1e-9)
        assert result["scores"] == pytest.approx([together.scores[row] for row in order], abs=1e-9)
        assert result["signature"] == str(together.signature)
