"""Rows per second by the length of the context, beside BERTScore with the same encoder and chrF.

    python -m benchmarks.rates

Prints a Markdown table. "Cold": the store is empty, so every reference is augmented and every text encoded;
"warm": the references and contexts have been scored against before, and the candidates are new. Each row has a
reference, a context and a candidate of its own (invented, see texts.py); models are loaded before.
"""

import json
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.common import fresh_store, parse, progress, seconds_of, speed_parser
from benchmarks.scoring import bert_scorer
from benchmarks.texts import Text, columns, invented, with_new_candidates
from mars_score import MarsScorer
from mars_score.settings.presets import DEFAULT_VARIANT

SENTENCES = "1,9,36"  # of a context: about 11, 100 and 400 words
Score = Callable[[list[Text]], object]


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument("--rows", type=int, default=16)
    options.add_argument("--variants", default=DEFAULT_VARIANT, help=f"default: {DEFAULT_VARIANT}")
    options.add_argument("--sentences", default=SENTENCES, help=f"of a context, of 11 words; default: {SENTENCES}")
    options.add_argument("--samples", type=int, default=0, help="of each row, as a column; not for variant paper")
    args = parse(options, rows=128, repeats=5)
    lines: list[dict[str, Any]] = []
    for name, score in _peers().items():  # they take no context
        rate = _rate(score, invented(args.rows), args.repeats)
        lines.append({"metric": name, "context_words": None, "cold": rate, "warm": rate})
    for sentences in args.sentences.split(","):
        texts = invented(args.rows, context_sentences=int(sentences))
        words = statistics.mean(len(text.context.split()) for text in texts)
        for variant in args.variants.split(","):
            cold, warm = _rates_of_mars(variant, texts, args.repeats, args.samples)
            lines.append({"metric": f"MARS, `{variant}`", "context_words": words, "cold": cold, "warm": warm})
    if args.json:
        for line in lines:
            print(json.dumps({"name": "rates", **line}))
        return
    print("| metric | words of context | rows per second, cold | warm |\n|---|---:|---:|---:|")
    for line in lines:
        length = "not read" if line["context_words"] is None else f"{line['context_words']:.0f}"
        print(f"| {line['metric']} | {length} | {line['cold']:.2g} | {line['warm']:.2g} |")


def _rates_of_mars(variant: str, texts: list[Text], repeats: int, samples: int) -> tuple[float, float]:
    """Measure rows per second from an empty store, and with new candidates afterwards."""
    with fresh_store() as store:
        scorer = MarsScorer("mini", variant=variant, store=store)
        scorer.score(*columns(invented(2, seed=-1)))  # loads the models
        written = [with_new_candidates(texts, -seed) for seed in range(1, samples + 1)]
        others = [[text.candidate for text in row] for row in zip(*written, strict=True)] or None
        cold = len(texts) / seconds_of(lambda: scorer.score(*columns(texts), samples=others))
        progress(f"{variant}, {len(texts)} rows: {cold:.3g} rows per second from an empty store")
        return cold, _rate(lambda new: scorer.score(*columns(new), samples=others), texts, repeats)


def _rate(score: Score, texts: list[Text], repeats: int) -> float:
    """Measure the median of rows per second, with candidates that are new each time."""
    sets = [with_new_candidates(texts, seed) for seed in range(1, repeats + 1)]
    return len(texts) / statistics.median(seconds_of(partial(score, new)) for new in sets)


def _peers() -> dict[str, Score]:
    from sacrebleu.metrics.chrf import CHRF

    bert_score, chrf = bert_scorer(), CHRF()

    def read(texts: list[Text]) -> Any:
        return bert_score.score([text.candidate for text in texts], [text.reference for text in texts])

    def count(texts: list[Text]) -> Any:
        return [chrf.sentence_score(text.candidate, [text.reference]) for text in texts]

    return {"BERTScore, the same encoder": read, "chrF": count}


if __name__ == "__main__":
    main()
