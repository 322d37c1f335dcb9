"""OpenVINO against torch: what each reads per second, and a first score from nothing but loaded models.

The texts are invented (see texts.py) and new in each run. Peak memory: that of a process with one engine alone.
"""

import json
import resource
import subprocess
import sys
from functools import partial
from itertools import count
from typing import Any

from benchmarks.common import Ratio, fresh_store, parse, progress, report_ratios, seconds_of, speed_parser
from benchmarks.texts import columns, invented, with_new_candidates
from mars_score import MarsScorer
from mars_score.scoring.evidence import ENTAILMENT, LIKELIHOOD, MATCH, Reader

ENGINES = ("torch", "openvino")


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument("--rows", type=int, default=48)
    options.add_argument("--sentences", type=int, default=9, help="of a context, of 11 words")
    options.add_argument("--peak-of", choices=ENGINES, help="score with one engine and print the peak memory")
    args = parse(options, rows=128, repeats=5)
    seeds = count(1)
    with fresh_store() as store:
        scorers = {name: MarsScorer("mini", variant="plus", engine=name, store=store) for name in ENGINES}
        if args.peak_of:
            scorers[args.peak_of].score(*columns(invented(args.rows, context_sentences=args.sentences)))
            print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
            return

        def read(scorer: MarsScorer, kind: str) -> float:
            rows = with_new_candidates(invented(args.rows, context_sentences=args.sentences), next(seeds))
            pairs: dict[str, list[Any]] = {
                MATCH: [text for row in rows for text in (row.candidate, row.context)],
                LIKELIHOOD: [(row.context, row.candidate) for row in rows],
                ENTAILMENT: [(row.context, row.candidate) for row in rows],
            }
            reader = Reader(scorer.settings, scorer.runtime)
            return seconds_of(lambda: reader.read(kind, pairs[kind]))

        def score(engine: str, variant: str) -> float:
            rows = invented(args.rows, context_sentences=args.sentences, seed=next(seeds))
            scorer = MarsScorer("mini", variant=variant, engine=engine, store=store)
            return seconds_of(lambda: scorer.score(*columns(rows)))

        runs: dict[str, Any] = {}
        for engine, scorer in scorers.items():
            progress(f"{engine}: models are loaded")
            scorer.score(*columns(invented(2, seed=-1)))
            runs |= {f"{kind} {engine}": partial(read, scorer, kind) for kind in (MATCH, LIKELIHOOD, ENTAILMENT)}
            runs |= {f"{variant} {engine}": partial(score, engine, variant) for variant in ("plus", "fast")}
        names = {MATCH: "encoder", LIKELIHOOD: "likelihood", ENTAILMENT: "entailment"}
        ratios = [
            Ratio(
                f"engines, {names.get(kind, f'first score, {kind}')}: torch / OpenVINO",
                f"{kind} torch",
                f"{kind} openvino",
            )
            for kind in (*names, "plus", "fast")
        ]
        report_ratios(args, runs, ratios, peak_openvino_by_torch=_peak("openvino") / _peak("torch"))


def _peak(engine: str) -> float:
    """Peak memory of a process that scores with one engine."""
    command = [sys.executable, "-m", "benchmarks.engines", "--peak-of", engine]
    return float(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


if __name__ == "__main__":
    main()
