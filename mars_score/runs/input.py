"""The rows of a run's input, checked, some at a time; read anew in each pass."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mars_score.augment.augmenter import Pair, prepare_pairs
from mars_score.augment.sampling.samples import Request, requests_of
from mars_score.data.columns import Columns
from mars_score.data.files import RowFile, read_parts
from mars_score.data.validation import Row
from mars_score.settings import MaskingSettings, SamplingSettings


@dataclass(frozen=True)
class Part:
    """Some rows in sequence.

    Attributes:
        file: the rows as read, those with several candidates once for each.
        candidates: without outer whitespace; blank for input without candidates.
        contexts: without outer whitespace.
        pairs: for each row its references, each with the context.
        wanted: for each row whether its references are augmented: not for a blank candidate.
        number: its place among the parts.
    """

    file: RowFile
    candidates: Sequence[str]
    contexts: Sequence[str]
    pairs: Sequence[Sequence[Pair]]
    wanted: Sequence[bool]
    number: int = 0

    def requests(self, settings: SamplingSettings) -> list[Request]:
        """What the samples of each row depend on."""
        return requests_of(self.contexts, [[text for _, text in row] for row in self.pairs], settings)

    @property
    def rows(self) -> list[Row]:
        """What each score depends on; a blank candidate's not on references."""
        texts = (tuple(text for _, text in row) for row in self.wanted_pairs)
        return list(zip(self.candidates, texts, self.contexts, strict=True))

    @property
    def wanted_pairs(self) -> list[list[Pair]]:
        """The pairs of each row, none where they are not wanted."""
        return [list(pairs) if want else [] for pairs, want in zip(self.pairs, self.wanted, strict=True)]


@dataclass(frozen=True)
class Input:
    """A file of rows and how to read it.

    Attributes:
        path: see :func:`mars_score.data.readers.stream_rows`.
        columns: the names of its columns; without one of candidates, all references are augmented.
        masking: how references are prepared.
    """

    path: str
    columns: Columns
    masking: MaskingSettings

    def parts(self, size: int) -> Iterator[Part]:
        """All rows from the first, ``size`` of the file's at a time.

        Raises:
            OSError: the file cannot be read.
            ValueError, TypeError: a fault of the file, named with its line and column; or it changed meanwhile.
        """
        before = self._state()
        for number, file in enumerate(read_parts(self.path, size)):
            if self.columns.prediction is not None:
                file = file.one_value_each(self.columns.prediction)
            candidates = self.columns.candidates(file)
            references = self.columns.references(file)
            contexts = self.columns.contexts(file) or [""] * len(file.rows)
            yield Part(
                file,
                candidates,
                [context.strip() for context in contexts],
                prepare_pairs(references, contexts, self.masking),
                [bool(candidate) or self.columns.prediction is None for candidate in candidates],
                number,
            )
        if self._state() != before:
            raise ValueError(f"{self.path} changed while it was read; run the command again")

    def digest(self) -> str:
        """A hash of what the file holds."""
        if os.path.exists(self.path) and not os.path.isfile(self.path) and not os.path.isdir(self.path):
            raise ValueError(
                f"{self.path} can be read only once, and is read several times; save it to a file, or pass it as "
                "standard input (-)"
            )
        digest, root = hashlib.blake2b(digest_size=16), Path(self.path)
        for file in sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]:
            digest.update(file.relative_to(root).as_posix().encode())
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "blake2b").digest())
        return digest.hexdigest()

    def _state(self) -> tuple[int, int]:
        found = os.stat(self.path)
        return found.st_size, found.st_mtime_ns
