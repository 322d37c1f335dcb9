"""Leave out what stands in the rated sets on which a model is measured.

No NLI model learns from a context, reference or candidate of the sets that choose or measure: a group of pairs
with a text that shares a run of twelve words with one of them is left out.
"""

from collections.abc import Iterator
from pathlib import Path

from mars_score.text import plain_words
from research.entailment.pairs import Group, read_rows

RUN = 12  # words

Runs = frozenset[tuple[str, ...]]


def measured_runs(folder: Path) -> Runs:
    """Return the runs of words of all contexts, references and candidates of the rated sets in a folder.

    Raises:
        FileNotFoundError: the folder holds no set.
    """
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise FileNotFoundError(f"{folder} holds no rated sets (*.jsonl)")
    return frozenset(
        run
        for path in paths
        for row in read_rows(path)
        for text in (row["context"], row["candidate"], *row["references"])
        for run in runs(text)
    )


def is_unseen(group: Group, measured: Runs) -> bool:
    """Tell whether none of the group's texts shares a run of words with a measured text."""
    return all(measured.isdisjoint(runs(text)) for text in (group.premise, *group.hypotheses))


def runs(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the runs of twelve words of a text; a shorter one has none."""
    words = plain_words(text)
    return zip(*(words[first:] for first in range(RUN)), strict=False)
