"""A new process with a warm store, from start to end, against a bare script with the same sentence encoder.

One process scores rows whose references are kept, with new candidates; one scores rows that are kept whole;
the bare script loads the encoder with sentence-transformers and embeds the new candidates, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.common import fresh_store, in_turns, median_ratio, medians, parse, progress, report, speed_parser
from benchmarks.texts import invented
from mars_score import MarsScorer
from mars_score.models.wheels import wheel_folder
from mars_score.settings import resolve_settings

SETTINGS = {"variant": "paper"}
OURS = """
import json, sys
from mars_score import MarsScorer
rows, store, settings = sys.argv[1:]
MarsScorer("mini", store=store, **json.loads(settings)).score(**json.load(open(rows)))
"""
BARE = """
import json, sys
from sentence_transformers import SentenceTransformer
rows, encoder = sys.argv[1:]
SentenceTransformer(encoder).encode(json.load(open(rows))["predictions"], show_progress_bar=False)
"""


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument("--rows", type=int, default=16)
    options.add_argument("--planner", choices=("self", "none"), default="none", help="of the kept augmentations")
    args = parse(options, rows=64, repeats=9)
    settings = {**SETTINGS, "planner": args.planner}
    texts = invented(args.rows)
    columns = {"references": [text.reference for text in texts], "contexts": [text.context for text in texts]}
    encoder = str(wheel_folder(resolve_settings("mini").models.encoder))
    files = iter(range(args.repeats + 2))
    with fresh_store() as store:

        def write_rows(number: int) -> str:
            path = Path(store) / f"rows-{number}.json"
            candidates = [text.candidate for text in invented(args.rows, seed=number)]
            path.write_text(json.dumps({"predictions": candidates, **columns}), encoding="utf-8")
            return str(path)

        kept = write_rows(next(files))
        progress(f"augmenting {args.rows} references")
        MarsScorer("mini", store=store, **settings).score(**json.loads(Path(kept).read_text(encoding="utf-8")))
        new = iter([write_rows(number) for number in files])
        ours = (str(store), json.dumps(settings))
        runs = {
            "new candidates": lambda: _python(OURS, next(new), *ours),
            "all kept": lambda: _python(OURS, kept, *ours),
            "bare": lambda: _python(BARE, kept, encoder),
        }
        in_turns(runs, 1)  # warm-up: the system's file cache
        seconds = in_turns(runs, args.repeats)
    figures = {"rows": args.rows, **medians(seconds)}
    for name, target in (("new candidates", 1.2), ("all kept", None)):
        ratio = median_ratio(seconds[name], seconds["bare"])
        report(args, f"warm start, {name} / bare encoder script", ratio, target, figures)


def _python(code: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
