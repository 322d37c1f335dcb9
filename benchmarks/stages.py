"""Where the time of the first score of a row goes: processor time of each stage, from an empty store.

    python -m benchmarks.stages

Rows, contexts and references are invented (texts.py) and differ; models are loaded before.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from typing import Any

from benchmarks.common import fresh_store, parse, speed_parser
from benchmarks.texts import Text, invented
from mars_score import MarsScorer
from mars_score.settings.presets import DEFAULT_VARIANT


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__)
    options.add_argument("--rows", type=int, default=8)
    options.add_argument("--sentences", type=int, default=9, help="of a context, of about 11 words each")
    options.add_argument(
        "--variants",
        default=DEFAULT_VARIANT,
        help=f"with commas between them; fast:4 is fast with 4 samples; default: {DEFAULT_VARIANT}",
    )
    args = parse(options, rows=64)
    texts = invented(args.rows, context_sentences=args.sentences)
    found = {variant: _seconds(variant, texts) for variant in args.variants.split(",")}
    if args.json:
        for variant, seconds in found.items():
            print(json.dumps({"name": "stages", "variant": variant, "rows": args.rows, "seconds": seconds}))
        return
    print("| stage | " + " | ".join(f"`{variant}`" for variant in found) + " |\n|---|" + "---:|" * len(found))
    for stage in dict.fromkeys(stage for seconds in found.values() for stage in seconds):
        shares = (seconds.get(stage, 0.0) / sum(seconds.values()) for seconds in found.values())
        print(f"| {stage} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    print(
        "| seconds per row | "
        + " | ".join(f"{sum(one.values()) / args.rows:.2g}" for one in found.values())
        + " |"
    )


def _seconds(variant: str, texts: list[Text]) -> dict[str, float]:
    """Seconds of processor time by stage; what is done before a stage reports belongs to it."""
    seconds: dict[str, float] = defaultdict(float)
    last = 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.process_time()
        seconds[stage] += now - last
        last = now

    name, _, samples = variant.partition(":")
    settings: dict[str, Any] = {"variant": name, **({"samples": int(samples)} if samples else {})}
    with fresh_store() as store:
        scorer = MarsScorer("mini", **settings, store=store, progress=report)
        for rows in (invented(2, context_sentences=1, seed=-1), texts):  # the first loads the models
            seconds.clear()
            last = time.process_time()
            scorer.score(
                *map(list, zip(*((row.candidate, row.reference, row.context) for row in rows), strict=True))
            )
            report("score", 1, 1)
    return dict(seconds)


if __name__ == "__main__":
    main()
