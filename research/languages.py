"""How well py3langid finds short English texts, by the probability from which a text counts as English.

    python -m research.languages DATA/*.jsonl

Of 140 sentences in fourteen other languages none should count, of 29 English ones (among them notes of doctors,
ingredients and headlines) as many as possible, and all rows of the rated sets: references and context of 30 each.
Where lingua-language-detector is installed, its figures stand beside.
"""

import argparse
import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mars_score.language import ENGLISH_PROBABILITY, english_probability
from research.sets import read_sets

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
        print(table(name, identifier, foreign, texts["english"], real))


def identifiers() -> dict[str, Callable[[str], float]]:
    """Return by name the functions from a text to its probability of being English."""
    found: dict[str, Callable[[str], float]] = {"py3langid": english_probability}
    if find_spec("lingua"):
        from lingua import LanguageDetectorBuilder

        builder = LanguageDetectorBuilder.from_all_languages()
        found["lingua"] = partial(_lingua, builder.build())
        found["its small models"] = partial(_lingua, builder.with_low_accuracy_mode().build())
    return found


def _lingua(detector: Any, text: str) -> float:
    from lingua import Language

    return float(detector.compute_language_confidence(text, Language.ENGLISH))


def table(
    name: str,
    identifier: Callable[[str], float],
    foreign: Sequence[str],
    english: Sequence[str],
    real: Sequence[str],
) -> str:
    """Return a Markdown table of how many texts count as English."""
    lines = [
        f"| {name}, from | {len(foreign)} foreign | {len(english)} English | {len(real)} rows |",
        "|---|---:|---:|---:|",
    ]
    columns = [[identifier(text) for text in texts] for texts in (foreign, english, real)]
    for threshold in THRESHOLDS:
        counts = [sum(value >= threshold for value in column) for column in columns]
        lines.append(f"| {threshold:g} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
