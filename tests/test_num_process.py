"""evaluate's own distribution: each process adds its share of the rows, and process 0 scores them all."""

import evaluate
import pytest
from processes import in_processes
from torch import distributed

import mars_metric
from mars_score.scorer import MarsScorer

# References with nouns of different frequency over all rows, so that IDF decides what is masked.
ROWS = [
    ("She took a train home.", ["A friend sold the car to the town library."], "Her old car broke."),
    ("They won the game!", ["The bridge leads the friend to a shop.", "They lost the game in town."], ""),
    ("Nobody came.", ["The baker met a friend near the bridge."], "The library is near."),
    ("It rained.", ["A letter told the friend about the road."], "It was late."),
    ("He forgot his ticket.", ["The mayor lost a ticket and the friend."], "The musical begins at six."),
]
# Of each case: the rows of both processes, how each hands them over, and settings at load.
SHARES = {
    "uneven": ([[3], [4, 0, 2, 1]], ["compute", "add"], {}),
    "interleaved": ([[0, 2, 4], [1, 3]], ["add", "add_batch"], {}),
    "none in process 1": ([[0, 1, 2, 3, 4], []], ["add", "add"], {}),
    "none in process 0": ([[], [0, 1, 2, 3, 4]], ["add", "compute"], {}),
    "an empty batch": ([[0, 1, 2, 3, 4], []], ["compute", "compute"], {}),
    "without contexts": ([[0, 2, 4], [1, 3]], ["add", "compute"], {"use_context": False}),
    "dialogues": ([[0, 3], [1, 2, 4]], ["add_batch", "add"], {"task": "dialogue"}),
}


def columns(rows, settings):
    names = ["predictions", "references", "contexts"][: 3 if settings.get("use_context", True) else 2]
    given = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    if "task" in settings:
        given["contexts"] = [context.split(". ") for context in given["contexts"]]
    return given


def score_shares(rank, folder, settings):
    """What each of two rounds of each of ``SHARES`` gives in this process, by name."""
    results = {}
    for name, (shares, how, more) in SHARES.items():
        process = {"num_process": 2, "process_id": rank, "experiment_id": name.replace(" ", "-")}
        metric = evaluate.load(mars_metric.__file__, cache_dir=folder, **process, **settings, **more)
        rows = columns([ROWS[row] for row in shares[rank]], more)
        results[name] = []
        for _ in range(2):
            if how[rank] == "add_batch":
                metric.add_batch(**rows)
            elif how[rank] == "add":
                for row in zip(*rows.values(), strict=True):
                    metric.add(**dict(zip(rows, row, strict=True)))
            results[name].append(metric.compute(**(rows if how[rank] == "compute" else {}), detailed=True))
            distributed.barrier()
    return results


@pytest.fixture(scope="module")
def settings(named_models):
    """Settings that other processes can use too."""
    models = {name: named_models[name] for name in ("language_model", "encoder", "dtype")}
    return {"preset": "mini", "variant": "paper", **models, "store": False, "max_mask_ratio": 0.4}


@pytest.fixture(scope="module")
def results(settings, tmp_path_factory):
    """What both processes got."""
    folder = tmp_path_factory.mktemp("processes")
    return in_processes(folder, score_shares, str(folder / "cache"), settings)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARES)
def test_process_0_scores_all_rows_as_one_process_would(name, results, settings):
    shares, _, more = SHARES[name]
    scorer = MarsScorer(**settings, **more)
    together = scorer.score(*columns(ROWS, more).values())
    alone = scorer.score(*columns(ROWS[:1], more).values())
    assert alone.score != pytest.approx(together.scores[0], abs=1e-9)  # IDF is counted over all rows
    assert results[1][name] == [None, None]
    assert len(results[0][name]) == 2
    for result in results[0][name]:
        assert result["mars"] == pytest.approx(together.score, abs=1e-9)
        scores = [together.scores[row] for rows in shares for row in rows]
        assert result["scores"] == pytest.approx(scores, abs=1e-9)
        assert result["signature"] == str(together.signature)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"samples": [["a"]]}, "samples"),
        ({"tasks": ["text"]}, "tasks"),
        ({"tasks": "dialogue"}, "tasks"),
        ({"contexts": [["a", "b"]]}, r"contexts\[0\] .*'dialogue'"),
        ({"contexts": [{"name": "a"}]}, r"contexts\[0\] .*'data'"),
    ],
)
def test_what_is_not_gathered_is_refused(change, named, tmp_path):
    """Nothing is added; a task that is said of all rows, above, is no column."""
    row = {"predictions": ["a"], "references": ["a"], "contexts": ["b"]}
    process = {"num_process": 2, "process_id": 1, "experiment_id": "refused", "cache_dir": str(tmp_path)}
    metric = mars_metric.Mars("fast", preset="mini", **process)
    for add in (metric.add_batch, metric.compute):
        with pytest.raises(ValueError, match=named):
            add(**{**row, **change})
    assert len(metric) == 0
