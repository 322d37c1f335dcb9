"""The rows of a run's input, checked, some at a time."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mars_score.augment.augmenter import prepare_rows
from mars_score.data.files import Columns, RowFile, read_parts
from mars_score.data.validation import Row
from mars_score.settings.stages import MaskingSettings


class Part(NamedTuple):
    """Some rows in sequence."""

    file: RowFile  # the rows as read, those with several candidates once for each
    # What each score depends on: candidate, prepared references and context; blank candidates where the input has
    # none.
    rows: Sequence[Row]


class Input:
    """A file of rows and how to read it."""

    def __init__(self, path: str, columns: Columns, masking: MaskingSettings) -> None:
        self.path, self.columns, self._masking = path, columns, masking
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise ValueError(
                f"{path} can be read only once, and is read several times; save it to a file, or pass it as "
                "standard input (-)"
            )
        self._state = self._read_state()

    def parts(self, size: int) -> Iterator[Part]:
        """All rows from the first, ``size`` of the file's at a time; a file that has changed is a ValueError."""
        try:
            for file in read_parts(self.path, size):
                self._check_state()
                yield self._checked(file)
        except (ValueError, TypeError, OSError):
            self._check_state()  # the change is to blame
            raise
        self._check_state()

    def _checked(self, file: RowFile) -> Part:
        if self.columns.prediction is not None:
            file = file.one_value_each(self.columns.prediction)
        return Part(file, prepare_rows(self.columns.rows(file), self._masking))

    def _check_state(self) -> None:
        if self._read_state() != self._state:
            raise ValueError(f"{self.path} changed during the run; run the command again")

    def _read_state(self) -> tuple[int, int] | None:
        state = os.stat(self.path) if os.path.exists(self.path) else None
        return state and (state.st_size, state.st_mtime_ns)
