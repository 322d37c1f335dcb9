"""The development sets: the kind of each, and the task of its contexts."""

from collections.abc import Iterable
from pathlib import Path

from mars_score.meta.sets import RatedSet, read_rated_sets

# Whole kinds are left out or resampled, as sets of one kind are alike.
KINDS = {
    "dialogue": ("usr_personachat", "usr_topicalchat", "grade_convai2", "dailydialogpp"),
    "stories": ("openmeva_roc", "union_roc"),
    "summaries": ("summeval", "dialsummeval", "newsroom", "realsumm", "huse_gigaword"),
    "answers": ("evouna_nq", "evouna_tq", "mohler_asag", "qa_feedback"),
    "simplification": ("asset_human", "simplicity_da"),
    "data-to-text": ("bagel", "sfhot", "sfres", "e2e", "webnlg20"),
    "questions": ("qgeval",),
}
# Of a kind; contexts of the others are texts.
_TASKS = {"dialogue": "dialogue", "data-to-text": "data", "summaries": "summary", "simplification": "summary"}
TASKS = {name: _TASKS.get(kind, "text") for kind, names in KINDS.items() for name in names}
TASKS["qa_feedback"] = "summary"  # answers from passages


def read_sets(paths: Iterable[str | Path]) -> list[RatedSet]:
    """Read files of rated candidates with the tasks of the development sets; other sets are texts."""
    files = [Path(path) for path in paths]
    return read_rated_sets(files, tasks={file.stem: TASKS.get(file.stem, "text") for file in files})
