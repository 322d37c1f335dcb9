"""Published and our own figures: the tables of docs/paper.md and research/other_papers.md.

    python -m research.paper                       # prints both pages with updated tables, without models
    python -m research.paper measure RATED_FOLDER  # runs the models and writes research/paper.json, in two hours
    python -m research.paper example               # measures only the examples of docs/paper.md, in minutes
    python -m research.paper choices RATED_FOLDER  # measures what differs from the paper, in minutes

RATED_FOLDER contains newsroom.jsonl, openmeva_roc.jsonl, evouna_nq.jsonl, evouna_tq.jsonl and qa_feedback.jsonl,
as for ``mars meta``. Published figures are in research/published.json.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from research.results import Figures, markdown

KEPT = Path(__file__).with_suffix(".json")
PUBLISHED = KEPT.with_name("published.json")
PAGES = (KEPT.parent.parent / "docs" / "paper.md", KEPT.with_name("other_papers.md"))
# Our sets by the task of the paper.
SETS = {"newsroom": ("newsroom",), "roc": ("openmeva_roc",), "mocha": ("evouna_nq", "evouna_tq", "qa_feedback")}
# Modules and functions by command.
MEASURING = {
    "measure": ("paper_measures", "measure"),
    "example": ("paper_measures", "measure_example"),
    "choices": ("paper_choices", "measure"),
}
UNPLANNED = "MARS w/o self-planning"
COMPARED = (
    "BERTScore",
    "MARS w/o self-planning",
    "MARS w/o context",
    "MARS w/o both",
    "reference cosine",
    "length",
)
# Metrics of the table of agreement. The last three are not in the paper.
AGREEING = (
    *("BLEU-1", "BERTScore", "Perplexity", "MARS", UNPLANNED, "MARS w/o context"),
    *("reference cosine", "context cosine", "length"),
)
# Our metrics by those of the paper's table of attacks.
ATTACKED = {"BERTScore": "BERTScore", "MARS (RoBERTa)": "MARS"}
# Our metrics by those of LS_Score's table, which lacks the last two.
RATED_APART = {
    "BERTScore-F": "BERTScore",
    "BERT cosine, document": "context cosine",
    "LS_Score": "",
    "MARS": "MARS",
    "length": "length",
}


def main() -> None:
    """Print the pages, or measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("command", nargs="?", choices=["print", *MEASURING], default="print")
    options.add_argument("folder", nargs="?", type=Path, help="of the rated sets, for measure and choices")
    names = [name for of_task in SETS.values() for name in of_task]
    options.add_argument("--sets", nargs="+", choices=names, default=names, help="measure only some of the sets")
    args = options.parse_args()
    if args.command in ("measure", "choices") and args.folder is None:
        options.error(f"{args.command} needs the folder of the rated sets")
    if args.command != "print":
        module, function = MEASURING[args.command]
        arguments = [] if args.command == "example" else [args.folder, args.sets]
        getattr(import_module(f"research.{module}"), function)(*arguments, KEPT)
    for path in PAGES:
        print(page(path), end="")


def page(path: Path) -> str:
    """Return the text of a page with an updated table after each ``<!-- table: NAME -->``."""
    kept, published = (json.loads(path.read_text(encoding="utf-8")) for path in (KEPT, PUBLISHED))

    def table(marker: re.Match[str]) -> str:
        return f"{marker[1]}\n{TABLES[marker[2]](kept, published)}\n"

    pattern = r"(<!-- table: (\w+) -->)\n(?:\|.*\n)*"
    return re.sub(pattern, table, path.read_text(encoding="utf-8"))


def number(value: float | str | None, sign: str = "") -> str:
    """Write a number with three decimals, or two from 1.5 on. Text stays, and None and NaN become ""."""
    if value is None or isinstance(value, str | int):
        return "" if value is None else str(value)
    return "" if np.isnan(value) else f"{value:{sign}.{3 if abs(value) < 1.5 else 2}f}"


def interval(ends: Sequence[float]) -> str:
    """Write a value with the ends of its interval, or a dash if it was not measured."""
    low, high = sorted(ends[1:])
    return "-" if np.isnan(ends[0]) else f"{number(ends[0])} [{number(low)}, {number(high)}]"


def agreement(kept: Figures, published: Figures) -> str:
    """Make Table 3: the mean of Pearson's r over systems of the metrics in :data:`AGREEING`, theirs and ours."""
    theirs, heading, columns = published["mars"]["table3"], ["r, mean of systems"], []
    for task, names in SETS.items():
        heading.append(f"{task}, theirs")
        columns.append([float(np.mean(theirs[task].get(metric, [np.nan]))) for metric in AGREEING])
        for name in names:
            if systems := kept["sets"][name]["systems"]:
                heading.append(f"{name}, {len(systems)}")
                columns.append([mean_of_systems(systems, metric) for metric in AGREEING])
    rows = zip(AGREEING, *columns, strict=True)
    return markdown([heading, *([metric, *map(number, values)] for metric, *values in rows)])


def mean_of_systems(systems: Mapping[str, Figures], metric: str) -> float:
    """Return the mean of r over the systems with a value. As in the paper, perplexity is not negated."""
    found = [figures.get(metric, [np.nan])[0] for figures in systems.values()]
    mean = float(np.mean([r for r in found if not np.isnan(r)] or [np.nan]))
    return -mean if metric == "Perplexity" else mean


def differences(kept: Figures, published: Figures) -> str:
    """Tabulate r of MARS (the first variant of a set) minus that of other metrics, over all rows."""
    names = [name for names in SETS.values() for name in names]

    def cell(name: str, metric: str) -> str:
        first, more = next(iter(kept["sets"][name]["ratios"])), kept["sets"][name]["above"].get(metric)
        if more is None or metric == first:
            return "-"
        return f"{number(more[0], '+')} {interval(more).partition(' ')[2]}"

    rows = [[metric, *(cell(name, metric) for name in names)] for metric in COMPARED]
    return markdown([["MARS minus", *names], *rows])


def attacks(kept: Figures, published: Figures) -> str:
    """Make Table 4: how much attacks lower r, and the share of our attacked rows below their originals."""
    theirs, sets = published["mars"]["table4"], kept["sets"]
    heading = ["attack"]
    for task, names in SETS.items():
        heading += [f"{task}, theirs", *names]
    rows = [heading]
    for place, attack in enumerate(("reorder", "retrieve")):
        for metric, own in ATTACKED.items():
            cells = [f"{attack}, {own}"]
            for task, names in SETS.items():
                cells.append(number(theirs[task][metric][place], "+"))
                for found in (sets[name]["attacks"].get(attack, {}) for name in names):
                    figures = found.get(own, found.get(UNPLANNED) if own == "MARS" else None)
                    cells.append(f"{figures[0]:+.3f} ({figures[1]:.2f})" if figures else "-")
            rows.append(cells)
    return markdown(rows)


def ratios(kept: Figures, published: Figures) -> str:
    """Make Table 5: r, and in brackets the mean standard deviation of the cosines, by largest mask ratio."""
    sets, rows = kept["sets"], [["largest ratio", "0", ".2", ".4", ".6", ".8"]]
    for task, names in SETS.items():
        measured = {f"{task}, theirs": published["mars"]["table5"][task]}
        for name in names:
            variant = next(iter(sets[name]["ratios"]))
            measured[f"{name}, {variant}"] = sets[name]["ratios"][variant]
        for name, by_ratio in measured.items():
            deviations = ["", *(f" ({number(value)})" for value in by_ratio["sd"][1:])]
            rows.append([name, *(number(r) + sd for r, sd in zip(by_ratio["r"], deviations, strict=True))])
    return markdown(rows)


def table1(kept: Figures, published: Figures) -> str:
    """Make Table 1: their BERTScore and MARS, and ours with the models of preset mini."""
    theirs, ours = published["mars"]["table1"], kept["table1"]
    rows = [[name, *map(number, [*values[-2:], *ours["rows"][name]])] for name, values in theirs["rows"].items()]
    their_names = (f"{name}, theirs" for name in theirs["columns"][-2:])
    return markdown([["", *their_names, *(f"ours, {name}" for name in ours["columns"])], *rows])


def aspects(kept: Figures, published: Figures) -> str:
    """Make LS_Score's table of Newsroom for :data:`RATED_APART`: Spearman's rho by aspect, theirs and ours."""
    theirs, own = published["ls_score"]["newsroom"], kept["sets"]["newsroom"]["aspects"]
    nothing = [None] * 4
    rows = [["Spearman", "coherence", "ours", "fluency", "ours", "informativeness", "ours", "relevance", "ours"]]
    for metric, ours in RATED_APART.items():
        pairs = zip(theirs.get(metric, nothing), own.get(ours, nothing), strict=True)
        rows.append([metric, *(number(value) for pair in pairs for value in pair)])
    return markdown(rows)


TABLES: dict[str, Callable[[Figures, Figures], str]] = {
    "agreement": agreement,
    "differences": differences,
    "attacks": attacks,
    "table1": table1,
    "ratios": ratios,
    "aspects": aspects,
}

if __name__ == "__main__":
    main()
