"""Where the time of the first score of a row goes: processor time of each stage, from an empty store.

    python -m benchmarks.stages

Rows, contexts and references are invented (texts.py) and differ; models are loaded before.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict

from benchmarks.common import fresh_store, parse, speed_parser
from benchmarks.texts import Text, columns, invented
from mars_score import MarsScorer
from mars_score.settings.presets import DEFAULT_VARIANT


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__)
    options.add_argument("--rows", type=int, default=8)
    options.add_argument("--sentences", type=int, default=9, help="of a context, of about 11 words each")
    options.add_argument("--variants", default=DEFAULT_VARIANT, help=f"with commas; default: {DEFAULT_VARIANT}")
    args = parse(options, rows=64)
    texts = invented(args.rows, context_sentences=args.sentences)
    for variant in args.variants.split(","):
        seconds = _seconds(variant, texts)
        if args.json:
            print(json.dumps({"name": "stages", "variant": variant, "rows": args.rows, "seconds": seconds}))
            continue
        total = sum(seconds.values())
        print(f"{variant}: {total / args.rows:.2g} seconds per row")
        for stage, of_stage in seconds.items():
            print(f"  {stage:<12} {of_stage / total:6.1%}")


def _seconds(variant: str, texts: list[Text]) -> dict[str, float]:
    """Seconds of processor time by stage; what is done before a stage reports belongs to it."""
    seconds: dict[str, float] = defaultdict(float)
    last = 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.process_time()
        seconds[stage] += now - last
        last = now

    with fresh_store() as store:
        scorer = MarsScorer("mini", variant=variant, store=store, progress=report)
        for rows in (invented(2, seed=-1), texts):  # the first loads the models
            seconds.clear()
            last = time.process_time()
            scorer.score(*columns(rows))
            report("score", 1, 1)
    return dict(seconds)


if __name__ == "__main__":
    main()
