"""Coverage-guided fuzzing of the readers of rows and of the checks of what they read, with atheris.

``pip install atheris`` first, then for example

    python tests/fuzz_readers.py -runs=100000
    python tests/fuzz_readers.py -max_total_time=60 -max_len=2000

All options are libFuzzer's. Whatever is found ends the run with a traceback, and the input is written to
``crash-*``; ``python tests/fuzz_readers.py crash-...`` repeats it.

The first byte of an input chooses the format: lines of JSON, the same compressed by us, gzip as it is, or Parquet.
The rest is the file. It yields dicts or is refused with a ValueError that names the file; lines of JSON are what
``json.loads`` makes of each line, compressed or not, and are written again as they are; the columns pass the
checks or are refused with a TypeError or ValueError.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tempfile

import atheris

with atheris.instrument_imports(include=["mars_score"]):
    from expected_rows import by_the_line, read_or_refused

    from mars_score.data.columns import Columns
    from mars_score.data.files import RowFile, row_line

import pyarrow as pa
from pyarrow import parquet

FORMATS = ("rows.jsonl", "rows.jsonl.gz", "damaged.jsonl.gz", "rows.parquet")
COLUMNS = Columns(reference="r", context="c", prediction="p")


def seeds() -> list[bytes]:
    """Files to begin with, one of each format at least."""
    rows = [{"p": "a", "r": ["b", "\u05e9"], "c": ""}, {"p": "\ud83d", "r": "x", "c": ["d"], "n": 1.5}]
    lines = "".join(map(row_line, rows)).encode()
    table = io.BytesIO()
    parquet.write_table(pa.table({"p": ["a", "b"], "r": [["x"], ["y", "z"]], "c": ["", None]}), table)
    odd = b'\xef\xbb\xbf{"p": NaN, "r": [[]], "c": {"a": null}}\r\n\n'
    return [b"\0" + lines, b"\1" + lines, b"\0" + odd, b"\2" + gzip.compress(lines), b"\3" + table.getvalue()]


def check(path: str, rows: list[dict]) -> None:
    """The columns of the rows hold texts or are refused."""
    file = RowFile(path, rows, range(len(rows)))
    for column in (COLUMNS.candidates, COLUMNS.references, COLUMNS.contexts):
        try:
            found = column(file)
        except (TypeError, ValueError) as error:
            fault = str(error)
        else:
            assert len(found) == len(rows)
            "".join(text for row in found for text in row).encode()
            continue
        assert fault.startswith(f"{path}:"), fault


def one_input(folder: str, data: bytes) -> None:
    """What atheris calls."""
    if not data:
        return
    name, content = FORMATS[data[0] % len(FORMATS)], data[1:]
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(gzip.compress(content, 1) if name == "rows.jsonl.gz" else content)
    rows = read_or_refused(path)
    if name.startswith("rows.jsonl"):
        assert repr(rows) == repr(by_the_line(content))
    if rows is not None:
        check(path, rows)
        if not name.endswith(".parquet"):
            assert repr([json.loads(row_line(row)) for row in rows]) == repr(rows)


def main() -> None:
    """Fuzz until libFuzzer's options say to stop."""
    in_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="mars-fuzz-", dir=in_memory) as folder:
        begin = os.path.join(folder, "seeds")
        os.mkdir(begin)
        for number, seed in enumerate(seeds()):
            with open(os.path.join(begin, str(number)), "wb") as file:
                file.write(seed)
        named = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
        atheris.Setup([*sys.argv, *([] if named else [begin])], lambda data: one_input(folder, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
