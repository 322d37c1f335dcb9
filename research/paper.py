"""The ACL 2021 paper's figures beside ours: the tables of docs/paper.md.

    python -m research.paper                       # prints the page with its tables made anew; needs no models
    python -m research.paper measure RATED_FOLDER  # runs the models and writes research/paper.json, in an hour

RATED_FOLDER holds newsroom.jsonl, openmeva_roc.jsonl, evouna_nq.jsonl, evouna_tq.jsonl and qa_feedback.jsonl, as
for ``mars meta``; ``--sets`` measures some of them again. Published figures are in research/published.json.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).with_suffix(".json")
PUBLISHED = KEPT.with_name("published.json")
PAGE = KEPT.parent.parent / "docs" / "paper.md"
# The paper's tasks -> our sets that stand for them.
SETS = {"newsroom": ("newsroom",), "roc": ("openmeva_roc",), "mocha": ("evouna_nq", "evouna_tq", "qa_feedback")}
SAME_SYSTEMS = {"TextRank": "textrank", "Seq2Seq": "abstractive", "Pointer-N": "pointer_n"}
UNPLANNED = "MARS w/o self-planning"
TRIVIAL = ("reference cosine", "context cosine", "length")  # not in the paper
# The metrics of LS_Score's table -> ours.
OURS = {
    "BERTScore-F": "BERTScore",
    "S+WMS": "Sent. Mover Sim.",
    "BERT cosine, reference": "reference cosine",
    "BERT cosine, document": "context cosine",
}
Figures = Mapping[str, Any]


def main() -> None:
    """Print the page, or measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("command", nargs="?", choices=["print", "measure"], default="print")
    options.add_argument("folder", nargs="?", type=Path, help="of the rated sets, for measure")
    names = [name for of_task in SETS.values() for name in of_task]
    options.add_argument("--sets", nargs="+", choices=names, default=names)
    args = options.parse_args()
    if args.command == "measure":
        from research.paper_measures import measure

        if args.folder is None:
            options.error("measure needs the folder of the rated sets")
        measure(args.folder, args.sets, KEPT)
    print(page(), end="")


def page() -> str:
    """Make docs/paper.md with the table behind each ``<!-- table: NAME -->`` anew."""
    kept, published = (json.loads(path.read_text(encoding="utf-8")) for path in (KEPT, PUBLISHED))

    def table(marker: re.Match[str]) -> str:
        name = marker[2]
        if name in TABLES:
            return f"{marker[1]}\n{TABLES[name](kept['sets'], published)}\n"
        source, key = name.split(".")
        return f"{marker[1]}\n{as_listed({**kept, **published}[source][key])}\n"

    pattern = r"(<!-- table: ([\w.]+) -->)\n(?:\|.*\n)*"
    return re.sub(pattern, table, PAGE.read_text(encoding="utf-8"))


def markdown(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table whose first column is text."""
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: Any, sign: str = "") -> str:
    """Write a number with three decimals, two from 1.5 on; text as it is; nothing for None and NaN."""
    if value is None or isinstance(value, str | int):
        return "" if value is None else str(value)
    return "" if np.isnan(value) else f"{value:{sign}.{3 if abs(value) < 1.5 else 2}f}"


def interval(ends: Sequence[float]) -> str:
    """Write a value with the ends of its interval; a dash for what is not measured."""
    low, high = sorted(ends[1:])
    return "-" if np.isnan(ends[0]) else f"{number(ends[0])} [{number(low)}, {number(high)}]"


def as_listed(table: Figures) -> str:
    """Write a table that is saved as it is shown: columns, and rows by name."""
    rows = ([name, *map(number, values)] for name, values in table["rows"].items())
    return markdown(["", *table["columns"]], rows)


def data(sets: Figures, published: Figures) -> str:
    """Make table 2: words of a context and of a reference, and their ratio Omega."""
    rows = []
    for task, names in SETS.items():
        rows.append([f"{task}, theirs", "", "", *map(number, published["mars"]["table2"][task])])
        for name in names:
            context, reference = sets[name]["words"]
            sizes = [sets[name]["rows"], sets[name]["contexts"]]
            rows.append([name, *map(number, [*sizes, context, reference, context / reference])])
    return markdown(["set", "rows", "contexts", "words of a context", "of a reference", "Ω"], rows)


def agreement(task: str, sets: Figures, published: Figures) -> str:
    """Make table 3 of a task: Pearson's r by system, its mean over systems, and over all rows."""
    theirs = dict(published["mars"]["table3"][task])
    systems = theirs.pop("systems")
    metrics = [*theirs, *TRIVIAL]
    values = np.array([theirs.get(metric, [np.nan] * len(systems)) for metric in metrics]).T
    rows = [[name, *map(number, line)] for name, line in zip(systems, values, strict=True)]
    rows.append(["mean", *map(number, values.mean(0))])
    for name in SETS[task]:
        by_system = {system: correlations(figures, metrics) for system, figures in sets[name]["systems"].items()}
        for system in [one for one in SAME_SYSTEMS.values() if one in by_system]:
            rows.append([f"ours: {system}", *map(interval, by_system[system])])
        if by_system:
            columns = [
                [r for r, *_ in column if not np.isnan(r)] for column in zip(*by_system.values(), strict=True)
            ]
            means = np.array([np.mean(column or [np.nan]) for column in columns])
            rows.append([f"{name}: mean of {len(by_system)} systems", *map(number, means)])
            rows.append(["minus theirs", *(number(value, "+") for value in means - values.mean(0))])
        label = "all rows" if by_system else "within questions"
        rows.append([f"{name}: {label} [95 %]", *map(interval, correlations(sets[name]["r"], metrics))])
        first = next(iter(sets[name]["ratios"]))
        above = {**sets[name]["above"], first: [np.nan] * 3}
        rows.append([f"{name}: {first} minus this", *(interval(above.get(one, above[first])) for one in metrics)])
    return markdown(["r", *metrics], rows)


def correlations(figures: Figures, metrics: Sequence[str]) -> list[list[float]]:
    """Return each r with the ends of its interval; as in the paper, that of the perplexity itself."""
    return [
        [-end if metric == "Perplexity" else end for end in figures.get(metric, [np.nan] * 3)]
        for metric in metrics
    ]


def attacks(sets: Figures, published: Figures) -> str:
    """Make table 4: what attacks take from r, and the share of attacked rows below their originals."""
    theirs = published["mars"]["table4"]
    heading = ["metric"]
    columns: list[tuple[str, int, list[Figures]]] = []
    for task, names in SETS.items():
        heading.append(f"{task}, theirs: r of the originals")
        columns.append((task, 2, []))
        for place, attack in enumerate(("reorder", "retrieve")):
            measured = {name: sets[name]["attacks"][attack] for name in names if attack in sets[name]["attacks"]}
            heading += [f"{attack}, theirs", *(f"{name} ({one['rows']} rows)" for name, one in measured.items())]
            columns.append((task, place, list(measured.values())))
    rows = []
    for metric in next(iter(theirs.values())):
        cells = [metric]
        for task, place, ours in columns:
            cells.append(number(theirs[task][metric][place], "+" if place < 2 else ""))
            for one in ours:
                mars = one.get("MARS", one.get(UNPLANNED)) if metric == "MARS (RoBERTa)" else None
                own = one.get(metric, mars)
                cells.append(f"{own[0]:+.3f} ({own[1]:.2f})" if own else "not measured")
        rows.append(cells)
    return markdown(heading, rows)


def ratios(sets: Figures, published: Figures) -> str:
    """Make table 5: r, and in brackets the mean standard deviation of the cosines, by largest mask ratio."""
    rows = []
    for task, names in SETS.items():
        measured = {f"{task}, theirs": published["mars"]["table5"][task]}
        for name in names:
            variant = next(iter(sets[name]["ratios"]))
            measured[f"{name}, {variant}"] = sets[name]["ratios"][variant]
        for name, one in measured.items():
            deviations = ["", *(f" ({number(value)})" for value in one["sd"][1:])]
            rows.append([name, *(number(r) + sd for r, sd in zip(one["r"], deviations, strict=True))])
    return markdown(["largest ratio", "0", ".2", ".4", ".6", ".8"], rows)


def aspects(sets: Figures, published: Figures) -> str:
    """Make LS_Score's table of Newsroom: Spearman's rho by aspect."""
    theirs, own = published["ls_score"]["newsroom"], sets["newsroom"]["aspects"]
    metrics, nothing = [*theirs, "MARS", "length"], [None] * 4
    rows = []
    for place, aspect in enumerate(("coherence", "fluency", "informativeness", "relevance")):
        rows.append([f"{aspect}: theirs", *(number(theirs.get(metric, nothing)[place]) for metric in metrics)])
        rows.append(["ours", *(number(own.get(OURS.get(metric, metric), nothing)[place]) for metric in metrics)])
    return markdown(["Spearman", *metrics], rows)


TABLES: dict[str, Callable[[Figures, Figures], str]] = {
    "data": data,
    **{task: partial(agreement, task) for task in SETS},
    "attacks": attacks,
    "ratios": ratios,
    "aspects": aspects,
}

if __name__ == "__main__":
    main()
