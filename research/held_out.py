"""Agreement on held-out sets and groups of sets, which neither the models nor the constants had seen.

    python -m research.held_out

Prints the table of README from research/results.json. Someone else than who chose models and constants measured
the figures, with the formula of commit 2989ff8. It is today's but for what the NLI model says, which has been
replaced since; so the columns are without it.
"""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from research.results import markdown, read

COLUMNS = ("plus", "fast", "BERTScore F1")


def main() -> None:
    """Print the table."""
    print(tables(read()["held_out"])["sets"])


def tables(recorded: Mapping[str, Any]) -> dict[str, str]:
    """Write Pearson's r by set, with the presets side by side, and the means over the sets of each preset."""
    sets = {preset: recorded[preset] for preset in ("mini", "medium")}
    rows = [["held-out set", *(f"{column}, `{preset}`" for preset in sets for column in COLUMNS)]]
    for name in dict.fromkeys(name for of_preset in sets.values() for name in of_preset):
        rows.append([name, *(cell for of_preset in sets.values() for cell in _cells(of_preset.get(name)))])
    means = [
        f"**{fmean(values[column] for values in of_preset.values()):.3f}**"
        for of_preset in sets.values()
        for column in COLUMNS
    ]
    counts = " and ".join(str(len(of_preset)) for of_preset in sets.values())
    rows.append([f"mean of {counts} sets", *means])
    return {"sets": markdown(rows)}


def _cells(values: Mapping[str, float] | None) -> list[str]:
    return [f"{values[column]:.3f}" for column in COLUMNS] if values else [""] * len(COLUMNS)


if __name__ == "__main__":
    main()
