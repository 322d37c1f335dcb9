"""Compare rows that were scored before with reading their file, and a new process with a bare script.

In this process model outputs come from the memory of a scorer, or from the store for a new one. In a new process
``mars score`` scores the same rows, and a script scores new candidates. The bare script only loads the encoder
with sentence-transformers and encodes as many candidates. All use variant "fast". Texts are invented (see
texts.py).
"""

from itertools import count
from pathlib import Path

from benchmarks.common import (
    MARS,
    Ratio,
    fresh_store,
    parse,
    progress,
    report_ratios,
    run_python,
    seconds_of,
    speed_parser,
)
from benchmarks.texts import columns, invented, rows_of, with_new_candidates, write_rows
from mars_score import MarsScorer
from mars_score.data.reading import read_rows
from mars_score.models.loading import locate
from mars_score.models.running import Runtime
from mars_score.settings import resolve_settings

SENTENCES = 3  # of a context
OURS = """
import json, sys
from mars_score import MarsScorer
file, store = sys.argv[1:]
rows = [json.loads(line) for line in open(file)]
columns = ([row[name] for row in rows] for name in ("prediction", "reference", "context"))
MarsScorer("mini", variant="fast", store=store).score(*columns)
"""
BARE = """
import json, sys
from sentence_transformers import SentenceTransformer
file, encoder = sys.argv[1:]
texts = [json.loads(line)["prediction"] for line in open(file)]
SentenceTransformer(encoder).encode(texts, show_progress_bar=False)
"""


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument("--rows", type=int, default=500, help="with stored model outputs")
    options.add_argument("--new", type=int, default=16, help="rows with new candidates, in a new process")
    args = parse(options, rows=10_000, new=64, repeats=9)
    texts, numbers = invented(args.rows, SENTENCES), count(1)
    encoder, _ = locate(resolve_settings("mini").models.encoder).arguments(Runtime())
    with fresh_store() as store:
        progress(f"scoring {args.rows} rows")
        scorer = MarsScorer("mini", variant="fast", store=store)
        scorer.score(*columns(texts))
        known = write_rows(store / "known.jsonl", rows_of(texts))
        one = write_rows(store / "one.jsonl", rows_of(texts[:1]))
        few = write_rows(store / "bare.jsonl", rows_of(texts[: args.new]))

        def from_store() -> float:
            other = MarsScorer("mini", variant="fast", store=store)
            return seconds_of(lambda: other.score(*columns(texts)))

        def command(file: Path) -> None:
            options = ["--preset", "mini", "--variant", "fast", "--quiet", "--store", str(store)]
            run_python(MARS, "score", str(file), "--out", str(store / f"out-{next(numbers)}.jsonl"), *options)

        def new_candidates() -> float:
            new = rows_of(with_new_candidates(texts[: args.new], next(numbers)))
            file = write_rows(store / "new.jsonl", new)
            return seconds_of(lambda: run_python(OURS, str(file), str(store)))

        runs = {
            "reading": lambda: seconds_of(lambda: read_rows(known)),
            "memory": lambda: seconds_of(lambda: scorer.score(*columns(texts))),
            "store": from_store,
            "command": lambda: command(known),
            "command with one row": lambda: command(one),
            "new candidates": new_candidates,
            "bare": lambda: run_python(BARE, str(few), encoder),
        }
        ratios = [
            Ratio("known rows, from the store / reading the file", "store", "reading"),
            Ratio("known rows, from the store / from memory", "store", "memory"),
            Ratio("known rows, mars score / mars score of one", "command", "command with one row"),
            Ratio("new candidates in a new process / bare encoder script", "new candidates", "bare", 1.2),
        ]
        report_ratios(args, runs, ratios)


if __name__ == "__main__":
    main()
