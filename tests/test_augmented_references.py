"""The example that gives augmented references to other metrics, with tiny models."""

import runpy
from pathlib import Path

import jsonl
import pytest
from scipy.stats import pearsonr

from mars_score import MarsScorer

EXAMPLE = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "augmented_references.py"))
ROWS = [
    ("She took the bus.", ["She went to work by bus."], "Her car was old.", 5),
    ("The cat slept on the sofa.", ["A cat lay there.", "It was asleep on the sofa."], "Where is the cat?", 4),
    ("He left.", ["He stayed at home for the day."], "It rained.", 1),
    ("They read a book on the train.", ["They read a book on the train."], "It was a long way.", 4),
]


@pytest.fixture
def run(tiny_mini, tmp_path, capsys):
    """Runs the example over a file of rows; returns the cells of its lines by (rows, metric)."""
    pytest.importorskip("sacrebleu")
    pytest.importorskip("bert_score")

    def run_example(rows):
        path = tmp_path / "own.jsonl"
        jsonl.write(path, rows)
        assert EXAMPLE["main"]([str(path)]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()[3:]]
        return {(" ".join(line[:-4]), line[-4]): [float(cell) for cell in line[-3:]] for line in lines}

    return run_example


def bleu(rows, references):
    from sacrebleu import sentence_bleu

    return [sentence_bleu(row[0], texts).score / 100 for row, texts in zip(rows, references, strict=True)]


def augmented():
    corpus = [text for row in ROWS for text in row[1]]
    scorer = MarsScorer("mini", variant="fast", max_mask_ratio=0.6, idf_corpus=corpus)
    return scorer.augment([row[1] for row in ROWS], [row[2] for row in ROWS])


def test_rated_rows(run):
    found = run([dict(zip(("candidate", "references", "context", "human"), row, strict=True)) for row in ROWS])
    assert [metric for _, metric in found] == ["BLEU", "chrF", "BERTScore"]
    ratings = [row[3] for row in ROWS]
    human, more, change = found["own: Pearson's r (n = 4)", "BLEU"]
    assert human == pytest.approx(pearsonr(bleu(ROWS, [row[1] for row in ROWS]), ratings)[0], abs=6e-4)
    assert all(len(texts) > len(row[1]) for texts, row in zip(augmented(), ROWS, strict=True))
    assert more == pytest.approx(pearsonr(bleu(ROWS, augmented()), ratings)[0], abs=6e-4)
    assert change == pytest.approx(more - human, abs=2e-3)


def test_rows_without_ratings(run):
    rows = [
        {"context": row[2], "references": row[1], "candidates": [{"text": row[0], "kind": "good"}]} for row in ROWS
    ]
    found = run(rows)
    human, more, _ = found["own: mean of 'good'", "BLEU"]
    assert human == pytest.approx(sum(bleu(ROWS, [row[1] for row in ROWS])) / 4, abs=6e-4)
    assert more == pytest.approx(sum(bleu(ROWS, augmented())) / 4, abs=6e-4)


def test_a_missing_file(capsys):
    assert EXAMPLE["main"](["nowhere.jsonl"]) == 1
    assert "nowhere.jsonl" in capsys.readouterr().err
