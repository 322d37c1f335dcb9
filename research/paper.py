"""Published figures beside ours: the tables of docs/paper.md and research/other_papers.md.

    python -m research.paper                       # prints both pages with their tables made anew; needs no models
    python -m research.paper measure RATED_FOLDER  # runs the models and writes research/paper.json, in an hour
    python -m research.paper example               # measures the examples of docs/paper.md alone, in minutes

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
PAGES = (KEPT.parent.parent / "docs" / "paper.md", KEPT.with_name("other_papers.md"))
# The paper's tasks -> our sets that stand for them.
SETS = {"newsroom": ("newsroom",), "roc": ("openmeva_roc",), "mocha": ("evouna_nq", "evouna_tq", "qa_feedback")}
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
    """Print the pages, or measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("command", nargs="?", choices=["print", "measure", "example"], default="print")
    options.add_argument("folder", nargs="?", type=Path, help="of the rated sets, for measure")
    names = [name for of_task in SETS.values() for name in of_task]
    options.add_argument("--sets", nargs="+", choices=names, default=names)
    args = options.parse_args()
    if args.command == "measure":
        from research.paper_measures import measure

        if args.folder is None:
            options.error("measure needs the folder of the rated sets")
        measure(args.folder, args.sets, KEPT)
    if args.command == "example":
        from research.paper_measures import measure

        measure(Path(), [], KEPT)
    for path in PAGES:
        print(page(path), end="")


def page(path: Path) -> str:
    """Make a page with the table behind each ``<!-- table: NAME -->`` anew."""
    kept, published = (json.loads(path.read_text(encoding="utf-8")) for path in (KEPT, PUBLISHED))

    def table(marker: re.Match[str]) -> str:
        name = marker[2]
        if name == "table1":
            return f"{marker[1]}\n{table1(kept, published)}\n"
        if name in TABLES:
            return f"{marker[1]}\n{TABLES[name](kept['sets'], published)}\n"
        source, key = name.split(".")
        return f"{marker[1]}\n{as_listed({**kept, **published}[source][key])}\n"

    pattern = r"(<!-- table: ([\w.]+) -->)\n(?:\|.*\n)*"
    return re.sub(pattern, table, path.read_text(encoding="utf-8"))


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
    """Make table 3 of a task: Pearson's r by system and its mean over them, theirs, and our mean over systems."""
    theirs = dict(published["mars"]["table3"][task])
    systems = theirs.pop("systems")
    names = [name for name in SETS[task] if sets[name]["systems"]]
    rows = []
    for metric in (*theirs, *TRIVIAL):
        values = theirs.get(metric, [np.nan] * len(systems))
        means = [
            np.mean([r for r in rs if not np.isnan(r)] or [np.nan])
            for rs in (
                [correlation_of(one, metric)[0] for one in sets[name]["systems"].values()] for name in names
            )
        ]
        rows.append([metric, *map(number, [*values, float(np.mean(values)), *map(float, means)])])
    ours = [f"{name}, mean of {len(sets[name]['systems'])}" for name in names]
    return markdown(["r", *systems, "mean", *ours], rows)


def all_rows(sets: Figures, published: Figures) -> str:
    """Tabulate Pearson's r over all rows, or within groups, and what MARS has more, with its interval."""
    metrics = [*(name for name in published["mars"]["table3"]["newsroom"] if name != "systems"), *TRIVIAL]
    names = [name for names in SETS.values() for name in names]
    rows = []
    for metric in metrics:
        cells = []
        for name in names:
            first, more = next(iter(sets[name]["ratios"])), sets[name]["above"].get(metric)
            r = correlation_of(sets[name]["r"], metric)
            has_more = more is not None and metric != first and not np.isnan(r[0])
            cells.append(
                f"{number(r[0])} ({number(more[0], '+')} {interval(more).partition(' ')[2]})"
                if has_more
                else interval(r)
            )
        rows.append([metric, *cells])
    return markdown(
        ["r (MARS minus it [95 %])", *names], [row for row in rows if any(cell != "-" for cell in row[1:])]
    )


def correlation_of(figures: Figures, metric: str) -> list[float]:
    """Return r with the ends of its interval; as in the paper, that of the perplexity itself."""
    ends = figures.get(metric, [np.nan] * 3)
    return [-end for end in ends] if metric == "Perplexity" else ends


def attacks(attack: str, sets: Figures, published: Figures) -> str:
    """Make table 4 of an attack: what it takes from r, and the share of attacked rows below their originals."""
    theirs, place = published["mars"]["table4"], ("reorder", "retrieve").index(attack)
    heading = ["metric"]
    for task, names in SETS.items():
        if attack == "retrieve":
            heading.append(f"{task}, theirs: r before")
        heading.append(f"{task}, theirs")
        heading += [
            f"{name} ({one[attack]['rows']} rows)" for name in names if attack in (one := sets[name]["attacks"])
        ]
    rows = []
    for metric in next(iter(theirs.values())):
        cells = [metric]
        for task, names in SETS.items():
            if attack == "retrieve":
                cells.append(number(theirs[task][metric][2]))
            cells.append(number(theirs[task][metric][place], "+"))
            for one in (sets[name]["attacks"].get(attack) for name in names):
                if one is not None:
                    mars = one.get("MARS", one.get(UNPLANNED)) if metric == "MARS (RoBERTa)" else None
                    own = one.get(metric, mars)
                    cells.append(f"{own[0]:+.3f} ({own[1]:.2f})" if own else "-")
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


def table1(kept: Figures, published: Figures) -> str:
    """Make table 1: their metrics, and ours with the models of preset mini."""
    theirs, ours = published["mars"]["table1"], kept["table1"]
    rows = [[name, *map(number, [*values, *ours["rows"][name]])] for name, values in theirs["rows"].items()]
    return markdown(["", *theirs["columns"], *(f"ours: {column}" for column in ours["columns"])], rows)


def aspects(sets: Figures, published: Figures) -> str:
    """Make LS_Score's table of Newsroom: Spearman's rho by aspect, theirs and ours."""
    theirs, own = published["ls_score"]["newsroom"], sets["newsroom"]["aspects"]
    nothing = [None] * 4
    rows = []
    for metric in (*theirs, "MARS", "length"):
        pairs = zip(theirs.get(metric, nothing), own.get(OURS.get(metric, metric), nothing), strict=True)
        rows.append([metric, *(number(value) for pair in pairs for value in pair)])
    names = ("coherence", "fluency", "informativeness", "relevance")
    return markdown(["Spearman", *(cell for name in names for cell in (name, "ours"))], rows)


TABLES: dict[str, Callable[[Figures, Figures], str]] = {
    "data": data,
    **{task: partial(agreement, task) for task in SETS},
    "all_rows": all_rows,
    "reorder": partial(attacks, "reorder"),
    "retrieve": partial(attacks, "retrieve"),
    "ratios": ratios,
    "aspects": aspects,
}

if __name__ == "__main__":
    main()
