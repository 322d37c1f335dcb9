"""The development sets: their kinds, the tasks of their contexts, and the options of commands that read them."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from mars_score.meta.sets import RatedSet, read_rated_sets

# Sets of one kind are alike, so whole kinds are left out or resampled.
KINDS = {
    "dialogue": ("usr_personachat", "usr_topicalchat", "grade_convai2", "dailydialogpp"),
    "stories": ("openmeva_roc", "union_roc"),
    "summaries": ("summeval", "dialsummeval", "newsroom", "realsumm", "huse_gigaword"),
    "answers": ("evouna_nq", "evouna_tq", "mohler_asag", "qa_feedback"),
    "simplification": ("asset_human", "simplicity_da"),
    "data-to-text": ("bagel", "sfhot", "sfres", "e2e", "webnlg20"),
    "questions": ("qgeval",),
}
_TASKS = {"dialogue": "dialogue", "data-to-text": "data", "summaries": "summary", "simplification": "summary"}
TASKS = {name: _TASKS.get(kind, "text") for kind, names in KINDS.items() for name in names}
TASKS["qa_feedback"] = "summary"  # answers from passages


def read_sets(paths: Iterable[str | Path]) -> list[RatedSet]:
    """Read files of rated candidates, with the tasks of the development sets and "text" for others."""
    files = [Path(path) for path in paths]
    return read_rated_sets(files, tasks={file.stem: TASKS.get(file.stem, "text") for file in files})


def set_options(text: str | None, files: str = "+") -> argparse.ArgumentParser:
    """Make the options of a command on rated sets.

    Args:
        text: help of the command.
        files: ``"+"``, or ``"*"`` for a command that can do without files.
    """
    options = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs=files, help="rated candidates, as for mars meta")
    options.add_argument("--rows", type=int, default=300, help="candidates of a set, about (default: 300)")
    return options
