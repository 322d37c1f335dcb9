"""Build the rated sets from their public repositories, each where its groups belong.

    python -m research.ratings FOLDER
    python -m research.ratings FOLDER --only bagel e2e --from DOWNLOADS

Downloads the files of each source to FOLDER/downloads, and writes the items of the groups that settings and
constants were chosen on to FOLDER/development/SET.jsonl, of those that models learned from to FOLDER/learned, and
of all others to FOLDER/held_out. ``--from`` reads files that were downloaded before (DOWNLOADS/SOURCE/FILE, as in
FOLDER/downloads) and needs no network. FOLDER/checksums.json keeps the SHA-256 of each file at its first use; a
file that differs later is refused. research/ratings.md lists the sets; the exit status is 1 if one was not built.
"""

import argparse
import hashlib
import json
import shutil
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from mars_score.atomic import replaced, write_whole
from research.ratings.forms import Item, letters
from research.ratings.sources import SOURCES, Source

GROUPS = Path(__file__).with_name("groups.json")
SPLITS = ("development", "learned", "held_out")
_TIMEOUT = 60  # seconds without an answer


class NoNetworkError(OSError):
    """No server can be reached."""


def main(argv: Sequence[str] | None = None) -> int:
    """Build the sets that the arguments name, and print a line for each; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m research.ratings", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="for downloads and sets")
    parser.add_argument(
        "--only", nargs="+", choices=SOURCES, default=list(SOURCES), metavar="SET", help="some sets"
    )
    parser.add_argument("--from", dest="downloads", type=Path, metavar="DOWNLOADS", help="files downloaded before")
    args = parser.parse_args(argv)
    known = json.loads(GROUPS.read_text(encoding="utf-8"))
    failed = False
    for name in args.only:
        try:
            print(f"{name}: built: {build(name, args.folder, args.downloads, known.get(name, {}))}", flush=True)
        except NoNetworkError as error:
            print(f"{name}: not built: {error}", file=sys.stderr)
            return 1
        except (OSError, ValueError) as error:
            print(f"{name}: not built: {error}", file=sys.stderr)
            failed = True
    return int(failed)


def build(name: str, folder: Path, downloads: Path | None, known: Mapping[str, Sequence[str]]) -> str:
    """Build a set; return how many items and groups are in each part, and the licence.

    Args:
        name: of the set.
        folder: where its files go.
        downloads: a folder with the files of the sources; None: they are downloaded.
        known: lines of groups of development and learned ones; see :func:`split`.

    Raises:
        OSError, ValueError: a file cannot be got or has a fault; NoNetworkError if no server answers.
    """
    source = SOURCES[name]
    files = get_files(source, folder, downloads)
    parts = split(name, list(source.reader(files)), known)
    for part, items in parts.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in items)
        write_whole(folder / part / f"{name}.jsonl", "".join(lines))
    counts = (
        f"{part.replace('_', ' ')} {len(items)} items in {len({item['group'] for item in items})} groups"
        for part, items in parts.items()
    )
    return f"{'; '.join(counts)} (licence: {source.licence})"


def fingerprint(context: str) -> str:
    """Return the first ten hexadecimal digits of the SHA-256 of the letters and digits of a context."""
    return hashlib.sha256(letters(context).encode()).hexdigest()[:10]


def split(name: str, items: Sequence[Item], known: Mapping[str, Sequence[str]]) -> dict[str, list[Item]]:
    """Put items into parts by the fingerprints of their contexts, and name set and groups in full.

    Args:
        name: of the set.
        items: as the reader yields them.
        known: for "development" and "learned", lines of fingerprints with a space between; FINGERPRINT=NAME also
            gives the group's name, by which it is found too. Groups that are in neither are held out.

    Raises:
        ValueError: there is no item, or the items lack a known group, so that others cannot be told apart either.
    """
    if not items:
        raise ValueError("the source has no rated item")
    part_of, name_of, mark_of = {}, {}, {}
    for part, lines in known.items():
        for entry in " ".join(lines).split():
            mark, _, named = entry.partition("=")
            part_of[mark], name_of[mark], mark_of[named] = part, named, mark
    parts: dict[str, list[Item]] = defaultdict(list)
    missing = set(part_of)
    for item in items:
        identity, own = item.pop("id"), item.pop("group")
        mark = fingerprint(item["context"])
        mark = mark if mark in part_of else mark_of.get(own, mark)
        missing.discard(mark)
        group = name_of.get(mark) or own
        identity = group + identity.removeprefix(own) if identity.startswith(f"{own}-") else identity
        names = {"id": f"{name}-{identity}", "dataset": name, "group": f"{name}-{group}"}
        parts[part_of.get(mark, "held_out")].append({**names, **item})
    if missing:
        fault = f"{len(missing)} of {len(part_of)} groups of development or learning are not in the source"
        raise ValueError(f"{fault}: it has changed, or its contexts are read in another way")
    return {part: parts[part] for part in SPLITS if parts[part]}


def get_files(source: Source, folder: Path, downloads: Path | None) -> dict[str, Path]:
    """Return the files of a source by their names, and compare them with the checksums of FOLDER."""
    files = {}
    for name, address in source.files.items():
        relative = f"{source.folder}/{name}"
        path = (downloads or folder / "downloads") / relative
        if not path.is_file():
            if downloads:
                raise ValueError(f"{path}: there is no such file; it is from {address}")
            if not address.startswith("http"):
                raise ValueError(f"{path}: there is no such file; get it by hand from {address}")
            download(address, path)
        check(path, relative, folder / "checksums.json")
        files[name] = path
    return files


def download(address: str, path: Path) -> None:
    """Download a file.

    Raises:
        NoNetworkError: the server cannot be reached.
        ValueError: the server has no such file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        answer = urllib.request.urlopen(address, timeout=_TIMEOUT)
        with answer, replaced(path) as beside, beside.open("wb") as file:
            shutil.copyfileobj(answer, file)
            if answer.length:  # bytes that did not come
                raise urllib.error.URLError("the connection ended early")
    except urllib.error.HTTPError as error:
        raise ValueError(f"{address}: {error.code} {error.reason}; get the file by hand as {path}") from None
    except (urllib.error.URLError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        remedy = "download the files where there is a network, and name their folder with --from"
        raise NoNetworkError(f"no network: {address} cannot be reached ({reason}); {remedy}") from None


def check(path: Path, name: str, record: Path) -> None:
    """Compare a file's SHA-256 with that in a record; note it there if it is new.

    Raises:
        ValueError: they differ.
    """
    checksums = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksums.setdefault(name, checksum) != checksum:
        fault = f"its SHA-256 is {checksum}, but {checksums[name]} at the first download"
        raise ValueError(f"{path}: {fault}; get the former version, or take {name!r} out of {record}")
    record.parent.mkdir(parents=True, exist_ok=True)
    write_whole(record, json.dumps(checksums, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
