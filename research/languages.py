"""How well py3langid identifies short English texts, by the threshold on its probability of English.

    python -m research.languages DATA/*.jsonl

Counts the texts that pass the threshold: 140 sentences in fourteen other languages (none should), 29 English ones,
such as notes of doctors, ingredients and headlines (most should), and references with context of 30 rows of each
rated set (all should). Adds tables for lingua-language-detector if it is installed.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mars_score.language import ENGLISH_PROBABILITY, english_probability
from research.results import markdown
from research.sets import read_sets

if TYPE_CHECKING:
    from lingua import LanguageDetector

THRESHOLDS = (0.05, 0.1, ENGLISH_PROBABILITY, 0.3, 0.5)
ROWS = 30  # of a set


def main() -> None:
    """Print one table for each identifier."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", help="rated candidates in English, as for mars meta")
    args = options.parse_args()
    texts = json.loads(Path(__file__).with_name("languages.json").read_text(encoding="utf-8"))
    foreign = [text for sentences in texts["foreign"].values() for text in sentences]
    real = []
    for rated in read_sets(args.files):
        rows = random.Random(rated.name).sample(rated.rows, min(ROWS, len(rated.rows)))
        contexts = [row.context if row.task != "data" else "" for row in rows]
        real += [" ".join([*row.references, context]) for row, context in zip(rows, contexts, strict=True)]
    for name, identifier in identifiers().items():
        print(table(name, identifier, {"foreign": foreign, "English": texts["english"], "rows": real}), end="\n\n")


def identifiers() -> dict[str, Callable[[str], float]]:
    """Return by name functions from a text to its probability of being English."""
    found: dict[str, Callable[[str], float]] = {"py3langid": english_probability}
    if find_spec("lingua"):
        from lingua import LanguageDetectorBuilder

        builder = LanguageDetectorBuilder.from_all_languages()
        found["lingua"] = partial(_lingua, builder.build())
        found["its small models"] = partial(_lingua, builder.with_low_accuracy_mode().build())
    return found


def _lingua(detector: LanguageDetector, text: str) -> float:
    from lingua import Language

    return float(detector.compute_language_confidence(text, Language.ENGLISH))


def table(name: str, identifier: Callable[[str], float], texts: Mapping[str, Sequence[str]]) -> str:
    """Write how many texts of each kind count as English, by threshold."""
    rows = [[f"{name}, from", *(f"{len(of_kind)} {kind}" for kind, of_kind in texts.items())]]
    columns = [[identifier(text) for text in of_kind] for of_kind in texts.values()]
    for threshold in THRESHOLDS:
        counts = [sum(value >= threshold for value in column) for column in columns]
        rows.append([f"{threshold:g}", *map(str, counts)])
    return markdown(rows)


if __name__ == "__main__":
    main()
