"""Agreement with human ratings on sets that neither the models nor the constants have seen.

    python -m research.held_out                     # prints the table of README, from research/results.json
    python -m research.held_out FOLDER --record     # measures FOLDER/*.jsonl with both presets

Scores all candidates by ``plus``, ``fast`` and BERTScore with the same encoder, and computes Pearson's r of each
set. A set is measured only once, after models and constants have been chosen.
"""

import argparse
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from mars_score.meta.metrics import Models, make_metric
from mars_score.meta.sets import RatedSet
from research import results
from research.agreement import pearson, scored
from research.sets import read_sets

PRESETS = ("mini", "medium")
COLUMNS = {"plus": "mars_plus", "fast": "mars_fast", "BERTScore F1": "bertscore"}  # names as of mars meta


def main() -> None:
    """Measure the sets of a folder, if there is one, and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", nargs="?", type=Path, help="of files of rated candidates, as for mars meta")
    options.add_argument("--preset", choices=PRESETS, help="measure one preset (default: both)")
    results.add_record_option(options)
    args = options.parse_args()
    figures = results.read()["held_out"]
    if args.folder:
        sets = read_sets(sorted(args.folder.glob("*.jsonl")))
        measured = {preset: measure(sets, preset) for preset in ([args.preset] if args.preset else PRESETS)}
        figures = {**figures, **measured, "commit": commit()}
        if args.record:
            results.record("held_out", figures)
    print(tables(figures)["sets"])
    print(f"\nMeasured at commit {figures['commit']}.")


def measure(sets: Sequence[RatedSet], preset: str) -> dict[str, dict[str, float]]:
    """Return Pearson's r of each metric on each set."""
    models = Models(preset=preset)
    metrics = {column: make_metric(name, models) for column, name in COLUMNS.items()}
    return {
        rated.name: {
            column: pearson(scored(metric, rated.rows), np.array(rated.ratings))
            for column, metric in metrics.items()
        }
        for rated in sets
    }


def commit() -> str:
    """Return the commit that is measured."""
    done = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def tables(recorded: results.Figures) -> dict[str, str]:
    """Write Pearson's r by set with the presets side by side, and the means over the sets of each preset."""
    sets = {preset: recorded[preset] for preset in PRESETS}
    rows = [["held-out set", *(f"{column}, `{preset}`" for preset in sets for column in COLUMNS)]]
    for name in dict.fromkeys(name for of_preset in sets.values() for name in of_preset):
        rows.append([name, *(cell for of_preset in sets.values() for cell in _cells(of_preset.get(name)))])
    means = [
        f"**{fmean(values[column] for values in of_preset.values()):.3f}**"
        for of_preset in sets.values()
        for column in COLUMNS
    ]
    counts = dict.fromkeys(str(len(of_preset)) for of_preset in sets.values())
    rows.append([f"mean of {' and '.join(counts)} sets", *means])
    return {"sets": results.markdown(rows)}


def _cells(values: Mapping[str, float] | None) -> list[str]:
    return [f"{values[column]:.3f}" for column in COLUMNS] if values else [""] * len(COLUMNS)


if __name__ == "__main__":
    main()
