"""How good the shipped entailment model is: accuracy, calibration, ladders, and edited summaries.

    python -m research.entailment.measure NLI_FOLDER > research/entailment/measure.md

People's pairs are those with held-out premises; SICK, ANLI and SummEdits were not learned from at all. Each
sentence of a summary is classified with the nearest passage of its document; the summary is called inconsistent
where the lowest entailment minus contradiction is below a threshold, which is chosen on the other domains. Prints
Markdown.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score import MarsScorer
from mars_score.metrics.plus import PlusConfig
from mars_score.models import mini_nli
from mars_score.models.nli import NliModel
from mars_score.text import nearest_passage, sentences
from research.entailment.pairs import LABELS, PEOPLE, held_out, rows_of
from research.ladders import KINDS, LADDERS

DOMAINS = ("news", "samsum", "sales_call", "qmsumm")
BINS = (0.4, 0.6, 0.8, 0.9, 1.0)
CONTRADICTION, ENTAILMENT = LABELS.index("contradiction"), LABELS.index("entailment")
Floats = NDArray[np.float64]
Row = Mapping[str, str]
Classify = Callable[[Sequence[tuple[str, str]]], Floats]  # probabilities of LABELS, (pairs, 3)


def main() -> None:
    """Classify and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("nli", type=Path, help="folder of the pairs")
    folder = options.parse_args().nli
    model = NliModel(*mini_nli.load("float32", "cpu"), batch_size=64)

    def classify(pairs: Sequence[tuple[str, str]]) -> Floats:
        different = list(dict.fromkeys(pairs))
        found = dict(zip(different, model.entails(different), strict=True))
        both = np.array([[found[pair].entailment, found[pair].contradiction] for pair in pairs])
        columns = {"entailment": both[:, 0], "contradiction": both[:, 1], "neutral": 1 - both.sum(axis=1)}
        return np.stack([columns[label] for label in LABELS], axis=1)

    correct = {}
    lines = ["| pairs | number | right |", "|---|---:|---:|"]
    for name in (*PEOPLE, "sick", "anli"):
        rows = [row for row in rows_of(folder / f"{name}.jsonl") if name not in PEOPLE or held_out(row["premise"])]
        shares = classify([(row["premise"], row["hypothesis"]) for row in rows])
        correct[name] = shares, np.array([is_right(row, one) for row, one in zip(rows, shares, strict=True)])
        lines.append(f"| {name} | {len(rows)} | {correct[name][1].mean():.3f} |")
    print("# The entailment model `mini-nli`\n\nPrinted by `python -m research.entailment.measure NLI_FOLDER`.\n")
    print("\n".join(lines), calibration(*correct["snli"]), ladders(classify), sep="\n\n")
    print(f"\n{edited_summaries(folder, classify)}")


def is_right(row: Row, shares: Floats) -> bool:
    """Tell whether the most probable class is the label; of two, whether it is entailment as it should be."""
    label = LABELS[int(shares.argmax())]
    return label != "entailment" if row["label"] == "not_entailment" else label == row["label"]


def calibration(shares: Floats, correct: NDArray[np.bool_]) -> str:
    """Write the share of SNLI's pairs that is right, by the probability of the most probable class."""
    largest = shares.max(axis=1)
    lines = ["| stated probability (snli) | pairs | its mean | right |", "|---|---:|---:|---:|"]
    for low, high in zip((0.0, *BINS), BINS, strict=False):
        inside = (largest > low) & (largest <= high)
        if inside.any():
            cells = f"{inside.sum()} | {largest[inside].mean():.2f} | {correct[inside].mean():.2f}"
            lines.append(f"| {low:.1f} to {high:.1f} | {cells} |")
    return "\n".join(lines)


def ladders(classify: Classify) -> str:
    """Write the mean probabilities of the ladders' kinds of candidates, by premise."""
    rows = [json.loads(line) for line in LADDERS.read_text(encoding="utf-8").splitlines()]
    lines = ["| candidate | reference entails | contradicts | context entails | contradicts |"]
    lines.append("|---|---:|---:|---:|---:|")
    for kind in KINDS:
        means = [
            classify([(row[premise], row[kind]) for row in rows]).mean(axis=0)
            for premise in ("reference", "context")
        ]
        cells = " | ".join(f"{one[label]:.2f}" for one in means for label in (ENTAILMENT, CONTRADICTION))
        lines.append(f"| {kind} | {cells} |")
    return "\n".join(lines)


def edited_summaries(folder: Path, classify: Classify) -> str:
    """Write the balanced accuracy on SummEdits (Laban et al. 2023), by the threshold of the other domains."""
    scorer = MarsScorer("mini", variant="fast", entailment_model=None)
    scores: dict[str, dict[str, Floats]] = {
        "entailment model": {},
        "token recall of the document": {},
        "cosine": {},
    }
    truth: dict[str, NDArray[np.bool_]] = {}
    for domain in DOMAINS:
        rows = rows_of(folder / f"summedits_{domain}.jsonl")
        truth[domain] = np.array([row["label"] == "consistent" for row in rows])
        texts, documents = [row["hypothesis"] for row in rows], [row["premise"] for row in rows]
        scores["entailment model"][domain] = consistency(texts, documents, classify)
        result = scorer.score(texts, documents, documents)
        scores["token recall of the document"][domain] = values(result, "references")
        scores["cosine"][domain] = values(scorer.score(texts, None, documents), "context")
    lines = [f"| balanced accuracy | {' | '.join(DOMAINS)} | mean |", f"|---|{'---:|' * (len(DOMAINS) + 1)}"]
    for name, by_domain in scores.items():
        accuracy = [by_threshold(domain, by_domain, truth) for domain in DOMAINS]
        lines.append(f"| {name} | {' | '.join(f'{one:.3f}' for one in (*accuracy, np.mean(accuracy)))} |")
    return "\n".join(lines)


def values(result: Any, term: str) -> Floats:
    """Return the values of a term, one per row."""
    return np.array([next(one.value for one in row.terms if one.name == term) for row in result.rows])


def by_threshold(domain: str, scores: Mapping[str, Floats], truth: Mapping[str, NDArray[np.bool_]]) -> float:
    """Compute the balanced accuracy on a domain by the threshold that is best on the others."""
    others = [other for other in DOMAINS if other != domain]
    seen = np.concatenate([scores[other] for other in others])
    labels = np.concatenate([truth[other] for other in others])
    threshold = max(np.unique(seen), key=lambda cut: balanced(seen >= cut, labels))
    return balanced(scores[domain] >= threshold, truth[domain])


def consistency(texts: Sequence[str], documents: Sequence[str], classify: Classify) -> Floats:
    """Compute the lowest entailment minus contradiction of a text's sentences, each by its nearest passage."""
    config = PlusConfig()
    pairs = [
        [
            (nearest_passage(sentence, document, config.premise_words), sentence)
            for sentence in sentences(text)[: config.max_sentences] or [text]
        ]
        for text, document in zip(texts, documents, strict=True)
    ]
    shares = classify([pair for text_pairs in pairs for pair in text_pairs])
    margins = iter(shares[:, ENTAILMENT] - shares[:, CONTRADICTION])
    return np.array([min(next(margins) for _ in text_pairs) for text_pairs in pairs])


def balanced(said: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """Return the mean of the shares of consistent and of inconsistent texts that are said to be so."""
    return float((said[truth].mean() + (~said[~truth]).mean()) / 2)


if __name__ == "__main__":
    main()
