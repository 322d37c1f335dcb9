"""Published figures beside ours: the tables of docs/paper.md and research/other_papers.md.

    python -m research.paper                       # prints both pages with their tables made anew; needs no models
    python -m research.paper measure RATED_FOLDER  # runs the models and writes research/paper.json, in two hours
    python -m research.paper example               # measures the examples of docs/paper.md alone, in minutes
    python -m research.paper choices RATED_FOLDER  # measures what differs from the paper, in minutes

RATED_FOLDER holds newsroom.jsonl, openmeva_roc.jsonl, evouna_nq.jsonl, evouna_tq.jsonl and qa_feedback.jsonl, as
for ``mars meta``; ``--sets`` measures some of them again. Published figures are in research/published.json.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

KEPT = Path(__file__).with_suffix(".json")
PUBLISHED = KEPT.with_name("published.json")
PAGES = (KEPT.parent.parent / "docs" / "paper.md", KEPT.with_name("other_papers.md"))
# The paper's tasks -> our sets that stand for them.
SETS = {"newsroom": ("newsroom",), "roc": ("openmeva_roc",), "mocha": ("evouna_nq", "evouna_tq", "qa_feedback")}
# Command -> module and function.
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
    options.add_argument("command", nargs="?", choices=["print", *MEASURING], default="print")
    options.add_argument("folder", nargs="?", type=Path, help="of the rated sets, for measure and choices")
    names = [name for of_task in SETS.values() for name in of_task]
    options.add_argument("--sets", nargs="+", choices=names, default=names)
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
    """Make a page with the table behind each ``<!-- table: NAME -->`` anew."""
    kept, published = (json.loads(path.read_text(encoding="utf-8")) for path in (KEPT, PUBLISHED))

    def table(marker: re.Match[str]) -> str:
        name = marker[2]
        if name in TABLES:
            return f"{marker[1]}\n{TABLES[name](kept, published)}\n"
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


def data(kept: Figures, published: Figures) -> str:
    """Make table 2: words of a context and of a reference, and their ratio Omega."""
    sets, rows = kept["sets"], []
    for task, names in SETS.items():
        rows.append([f"{task}, theirs", "", "", *map(number, published["mars"]["table2"][task])])
        for name in names:
            context, reference = sets[name]["words"]
            sizes = [sets[name]["rows"], sets[name]["contexts"]]
            rows.append([name, *map(number, [*sizes, context, reference, context / reference])])
    return markdown(["set", "rows", "contexts", "words of a context", "of a reference", "Ω"], rows)


def agreement(task: str, kept: Figures, published: Figures) -> str:
    """Make table 3 of a task: Pearson's r by system and its mean over them, theirs, and our mean over systems."""
    theirs, sets = dict(published["mars"]["table3"][task]), kept["sets"]
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


def all_rows(kept: Figures, published: Figures) -> str:
    """Tabulate Pearson's r over all rows, or within groups."""
    metrics = [*(name for name in published["mars"]["table3"]["newsroom"] if name != "systems"), *TRIVIAL]
    names = [name for names in SETS.values() for name in names]
    rows = ([one, *(interval(correlation_of(kept["sets"][name]["r"], one)) for name in names)] for one in metrics)
    return markdown(["r [95 %]", *names], [row for row in rows if any(cell != "-" for cell in row[1:])])


def differences(kept: Figures, published: Figures) -> str:
    """Tabulate what MARS has more than others over all rows; the first variant of a set stands for MARS."""
    names = [name for names in SETS.values() for name in names]

    def cell(name: str, metric: str) -> str:
        first, more = next(iter(kept["sets"][name]["ratios"])), kept["sets"][name]["above"].get(metric)
        return (
            "-"
            if more is None or metric == first
            else f"{number(more[0], '+')} {interval(more).partition(' ')[2]}"
        )

    return markdown(["MARS minus", *names], [[one, *(cell(name, one) for name in names)] for one in COMPARED])


def correlation_of(figures: Figures, metric: str) -> list[float]:
    """Return r with the ends of its interval; as in the paper, that of the perplexity itself."""
    ends = figures.get(metric, [np.nan] * 3)
    return [-end for end in ends] if metric == "Perplexity" else ends


def attacks(attack: str, kept: Figures, published: Figures) -> str:
    """Make table 4 of an attack: what it takes from r, and the share of attacked rows below their originals."""
    theirs, place = published["mars"]["table4"], ("reorder", "retrieve").index(attack)
    sets = kept["sets"]
    heading = ["metric"]
    for task, names in SETS.items():
        if attack == "retrieve":
            heading.append(f"{task}: r")
        heading.append(task)
        heading += [
            f"{name} ({one[attack]['rows']})" for name in names if attack in (one := sets[name]["attacks"])
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


def ratios(kept: Figures, published: Figures) -> str:
    """Make table 5: r, and in brackets the mean standard deviation of the cosines, by largest mask ratio."""
    sets, rows = kept["sets"], []
    for task, names in SETS.items():
        measured = {f"{task}, theirs": published["mars"]["table5"][task]}
        for name in names:
            variant = next(iter(sets[name]["ratios"]))
            measured[f"{name}, {variant}"] = sets[name]["ratios"][variant]
        for name, one in measured.items():
            deviations = ["", *(f" ({number(value)})" for value in one["sd"][1:])]
            rows.append([name, *(number(r) + sd for r, sd in zip(one["r"], deviations, strict=True))])
    return markdown(["largest ratio", "0", ".2", ".4", ".6", ".8"], rows)


def masks(kept: Figures, published: Figures) -> str:
    """Tabulate the share of masks that another choice changes."""
    sets = kept["choices"]
    names = list(next(iter(sets.values()))["masks"])
    rows = ([one, *(f"{sets[name]['masks'][one]:.2f}" for name in sets)] for one in names)
    return markdown(["share", *sets], rows)


def choices(kept: Figures, published: Figures) -> str:
    """Tabulate the share of infills that another choice changes, and what it adds to r."""
    sets = {name: one for name, one in kept["choices"].items() if one["infills"]}
    names = dict.fromkeys(choice for one in sets.values() for choice in one["infills"])

    def cell(name: str, choice: str) -> str:
        found = sets[name]["infills"].get(choice)
        if found is None:
            return "-"
        return f"{found['infills']:.2f}" + ("" if found["r"] is None else f" ({found['r']:+.3f})")

    rows = ([one, *(cell(name, one) for name in sets)] for one in names)
    return markdown(
        ["infills that change (r)", *(f"{name}, {one['rows']} rows" for name, one in sets.items())], rows
    )


def table1(kept: Figures, published: Figures) -> str:
    """Make table 1: their metrics, and ours with the models of preset mini."""
    theirs, ours = published["mars"]["table1"], kept["table1"]
    rows = [[name, *map(number, [*values, *ours["rows"][name]])] for name, values in theirs["rows"].items()]
    return markdown(["", *theirs["columns"], *(f"ours: {column}" for column in ours["columns"])], rows)


def aspects(kept: Figures, published: Figures) -> str:
    """Make LS_Score's table of Newsroom: Spearman's rho by aspect, theirs and ours."""
    theirs, own = published["ls_score"]["newsroom"], kept["sets"]["newsroom"]["aspects"]
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
    "differences": differences,
    "masks": masks,
    "choices": choices,
    "table1": table1,
    "reorder": partial(attacks, "reorder"),
    "retrieve": partial(attacks, "retrieve"),
    "ratios": ratios,
    "aspects": aspects,
}

if __name__ == "__main__":
    main()
