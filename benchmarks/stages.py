"""Print a Markdown table of processor time by stage, variant and length of the context.

    python -m benchmarks.stages

The store is empty for the first score. "New candidates" have the same references and contexts. "Kept rows" are
those of the first score, for a new scorer. Texts are invented (texts.py) and distinct. Models are loaded before.
"""

import json
import time
from collections import defaultdict
from typing import Any

from benchmarks.common import fresh_store, parse, speed_parser
from benchmarks.rates import SENTENCES, WARM_UP
from benchmarks.texts import Text, columns, invented, with_new_candidates
from mars_score import MarsScorer
from mars_score.settings import CONFIGS


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__)
    options.add_argument("--rows", type=int, default=8)
    options.add_argument("--sentences", default=SENTENCES, help=f"of a context, of 11 words; default: {SENTENCES}")
    options.add_argument("--preset", default="mini")
    options.add_argument("--dtype", default="float32")
    names = ",".join(CONFIGS)
    options.add_argument("--variants", default=names, help=f"with commas; default: {names}")
    args = parse(options, rows=64)
    if not args.json:
        print("| variant | words of context | of a row | milliseconds | stages |\n|---|---:|---|---:|---|")
    for variant in args.variants.split(","):
        for sentences in map(int, args.sentences.split(",")):
            texts = invented(WARM_UP + args.rows, context_sentences=sentences)
            settings = {"preset": args.preset, "variant": variant, "dtype": args.dtype}
            for kind, seconds in _seconds(settings, texts).items():
                line = {"variant": variant, "words": 11 * sentences, "of": kind, "seconds": seconds}
                if args.json:
                    print(json.dumps({"name": "stages", "rows": args.rows, **line}))
                    continue
                total = sum(seconds.values())
                shares = sorted(seconds.items(), key=lambda stage: -stage[1])
                stages = ", ".join(f"{name} {share / total:.0%}" for name, share in shares if share > 0.01 * total)
                each = 1000 * total / args.rows
                print(f"| {variant} | {11 * sentences} | {kind} | {each:.3g} | {stages} |", flush=True)


def _seconds(settings: dict[str, Any], texts: list[Text]) -> dict[str, dict[str, float]]:
    """Measure processor time by kind of row and stage. A stage includes all work since the previous report."""
    seconds: dict[str, float] = defaultdict(float)
    last = 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.process_time()
        seconds[stage] += now - last
        last = now

    by_kind = {}
    with fresh_store() as store:
        scorer = MarsScorer(**settings, store=store, progress=report)
        scorer.score(*columns(texts[:WARM_UP]))  # loads the models
        texts = texts[WARM_UP:]
        other = MarsScorer(**settings, store=store, progress=report)
        new = with_new_candidates(texts, seed=1)
        runs = {"first score": (scorer, texts), "new candidates": (scorer, new), "kept rows": (other, texts)}
        for kind, (scorer, rows) in runs.items():
            seconds.clear()
            last = time.process_time()
            scorer.score(*columns(rows))
            report("rest", 1, 1)
            by_kind[kind] = dict(seconds)
    return by_kind


if __name__ == "__main__":
    main()
