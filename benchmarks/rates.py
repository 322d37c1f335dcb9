"""Print a Markdown table of rows per second, memory and disk by preset and variant, with BERTScore and chrF.

    python -m benchmarks.rates

"First": the store is empty, so every reference is augmented and every text encoded. "New": references and contexts
are known, candidates are new. "Kept": all model outputs are in the store, the scorer is new. BERTScore has the
same encoder. Each row has its own reference, context and candidate (invented, see texts.py). Models are loaded
before. Peak memory is that of the process so far, so give one preset and one variant to see theirs. On a GPU it is
GPU memory, and "busy" is the share of time in which the GPU works (nvidia-smi). If other processes share the
cores, use ``--processor-time`` and one thread.
"""

import json
import resource
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common import Clock, fresh_store, parse, progress, seconds_of, speed_parser
from benchmarks.scoring import bert_scorer
from benchmarks.texts import Text, columns, invented, with_new_candidates
from mars_score import MarsScorer
from mars_score.cache import ResultStore
from mars_score.settings import DEFAULT_VARIANT

SENTENCES = "1,9,36"  # of a context: about 11, 100 and 400 words
COLUMNS = {"first": "rows per second: first", "new": "new", "kept": "kept", "gib": "GiB", "kb": "kB a row"}
WARM_UP = 2  # rows scored before, to load models and libraries
Score = Callable[[list[Text]], object]


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument("--rows", type=int, default=16)
    options.add_argument("--presets", default="mini", help="with commas; default: mini")
    options.add_argument("--variants", default=DEFAULT_VARIANT, help=f"default: {DEFAULT_VARIANT}")
    options.add_argument("--sentences", default=SENTENCES, help=f"of a context, of 11 words; default: {SENTENCES}")
    options.add_argument("--samples", type=int, default=0, help="of each row, as a column; not for variant paper")
    options.add_argument("--dtype", default="float32")
    options.add_argument("--processor-time", action="store_true", help="instead of time; of all threads together")
    args = parse(options, rows=128, repeats=5)
    if not args.json:
        print(f"| metric | words of context | {' | '.join(COLUMNS.values())} | busy |")
        print("|---" * 2 + "|---:" * (len(COLUMNS) + 1) + "|")
    clock = time.process_time if args.processor_time else time.perf_counter
    for preset in args.presets.split(","):
        for sentences in args.sentences.split(","):
            texts = invented(WARM_UP + args.rows, context_sentences=int(sentences))
            words = statistics.mean(len(text.context.split()) for text in texts)
            for variant in args.variants.split(","):
                settings = {"preset": preset, "variant": variant, "dtype": args.dtype}
                figures = _rates_of_mars(settings, texts, args.repeats, args.samples, clock)
                _print(args.json, f"MARS, `{variant}`", preset, words, figures)
        for name, score in _peers(preset).items():  # they take no context
            _print(args.json, name, preset, None, _rates_of_peer(score, invented(args.rows), args.repeats, clock))


def _print(as_json: bool, metric: str, preset: str, words: float | None, figures: dict[str, float]) -> None:
    if as_json:
        line = {"name": "rates", "metric": metric, "preset": preset, "context_words": words, **figures}
        print(json.dumps(line), flush=True)
        return
    length = "not read" if words is None else f"{words:.0f}"
    shown = [f"{figures[name]:.2g}" if name in figures else "" for name in (*COLUMNS, "busy")]
    print(f"| {metric}, {preset} | {length} | {' | '.join(shown)} |", flush=True)


def _rates_of_mars(
    settings: dict[str, Any], texts: list[Text], repeats: int, samples: int, clock: Clock
) -> dict[str, float]:
    """Measure rows per second from an empty store, then with new candidates, then of stored rows."""
    with fresh_store() as store:
        scorer = MarsScorer(**settings, store=store)
        scorer.score(*columns(texts[:WARM_UP]))  # loads the models
        texts = texts[WARM_UP:]
        written = [with_new_candidates(texts, -seed) for seed in range(1, samples + 1)]
        others = [[text.candidate for text in row] for row in zip(*written, strict=True)] or None
        before = _stored_bytes(store)
        with _watched() as figures:
            figures["first"] = len(texts) / seconds_of(
                lambda: scorer.score(*columns(texts), samples=others), clock
            )
            progress(f"{settings}, {len(texts)} rows: {figures['first']:.3g} rows per second from an empty store")
            figures["kb"] = (_stored_bytes(store) - before) / len(texts) / 1000
            figures["new"] = _rate(lambda new: scorer.score(*columns(new), samples=others), texts, repeats, clock)
        again = MarsScorer(**settings, store=store)
        figures["kept"] = len(texts) / seconds_of(lambda: again.score(*columns(texts), samples=others), clock)
        return figures


def _stored_bytes(store: Path) -> int:
    return sum(size for _, size in ResultStore(store).info().values())


def _rates_of_peer(score: Score, texts: list[Text], repeats: int, clock: Clock) -> dict[str, float]:
    with _watched() as figures:
        figures["first"] = figures["new"] = _rate(score, texts, repeats, clock)
    return figures


def _rate(score: Score, texts: list[Text], repeats: int, clock: Clock) -> float:
    """Measure the median of rows per second, with new candidates each time."""
    sets = [with_new_candidates(texts, seed) for seed in range(1, repeats + 1)]
    return len(texts) / statistics.median(seconds_of(partial(score, new), clock) for new in sets)


@contextmanager
def _watched() -> Iterator[dict[str, float]]:
    """Yield figures, to which peak memory is added, and on a GPU the share of time in which it works."""
    import torch

    figures: dict[str, float] = {}
    if not torch.cuda.is_available():
        yield figures
        figures["gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        return
    torch.cuda.reset_peak_memory_stats()
    busy, ended = [], threading.Event()
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]

    def watch() -> None:
        while shutil.which(command[0]) and not ended.wait(0.2):
            busy.append(float(subprocess.check_output(command, text=True).split()[0]) / 100)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield figures
    finally:
        ended.set()
        watcher.join()
    figures["gib"] = torch.cuda.max_memory_allocated() / 2**30
    if busy:
        figures["busy"] = statistics.mean(busy)


def _peers(preset: str) -> dict[str, Score]:
    from sacrebleu.metrics.chrf import CHRF

    bert_score, chrf = bert_scorer(preset), CHRF()

    def read(texts: list[Text]) -> object:
        return bert_score.score([text.candidate for text in texts], [text.reference for text in texts])

    def count(texts: list[Text]) -> object:
        return [chrf.sentence_score(text.candidate, [text.reference]) for text in texts]

    return {"BERTScore, the same encoder": read, "chrF": count}


if __name__ == "__main__":
    main()
