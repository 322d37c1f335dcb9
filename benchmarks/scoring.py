"""Compare the scoring of new candidates against known references: `paper` with BERTScore, other variants with it.

The cost of the NLI model is that of the other variants divided by their cost without it.

All metrics have their models loaded and score the same (candidate, reference) pairs, with new candidates in each
run. MARS finds augmented references and their encodings in its cache. BERTScore (no IDF, same encoder weights in
float32) encodes both texts of each pair. Texts are invented (see texts.py).
"""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from benchmarks.common import Ratio, fresh_store, parse, progress, report_ratios, seconds_of, speed_parser
from benchmarks.texts import columns, invented, with_new_candidates
from mars_score import MarsScorer
from mars_score.models.loading import locate
from mars_score.settings import VariantName

VARIANTS: dict[VariantName, float] = {"fast": 2.0, "plus": 8.0}  # target of the ratio to `paper`
WITHOUT_NLI = {"fast": 2.5, "plus": 1.18}  # target of the ratio to the same variant without the NLI model


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=5)
    options.add_argument("--pairs", type=int, default=64)
    options.add_argument("--preset", default="mini")
    options.add_argument("--dtype", default="auto", help="of plus and fast; default: auto")
    options.add_argument("--task", choices=("text", "summary"), help="of the rows; default: by their contexts")
    options.add_argument("--sentences", type=int, default=1, help="of a context, of 11 words (default: 1)")
    args = parse(options, pairs=256, repeats=9)
    texts, seeds = invented(args.pairs, args.sentences), count(1)

    def timed(score: Callable[..., object], with_contexts: bool) -> float:
        candidates, references, contexts = columns(with_new_candidates(texts, next(seeds)))
        if with_contexts:
            return seconds_of(lambda: score(candidates, references, contexts, tasks=args.task))
        return seconds_of(lambda: score(candidates, references))

    runs = {"bertscore": partial(timed, bert_scorer(args.preset).score, False)}
    with fresh_store() as store:
        settings: dict[str, Any] = {"preset": args.preset, "store": store}
        scorers = {"paper": MarsScorer(variant="paper", planner="none", **settings)}
        settings["dtype"] = args.dtype
        for variant in VARIANTS:
            scorers[variant] = MarsScorer(variant=variant, **settings)
            scorers[f"{variant} without NLI"] = MarsScorer(variant=variant, entailment_model=None, **settings)
        for name, scorer in scorers.items():
            progress(f"{args.pairs} references with variant {name}")
            scorer.score(*columns(texts), tasks=args.task)
            runs[name] = partial(timed, scorer.score, True)
        ratios = [Ratio("scoring, paper / BERTScore", "paper", "bertscore", 1.0)]
        ratios += [Ratio(f"scoring, {name} / paper", name, "paper", target) for name, target in VARIANTS.items()]
        ratios += [
            Ratio(f"scoring, {name} / the same without NLI", name, f"{name} without NLI", target)
            for name, target in WITHOUT_NLI.items()
        ]
        ratios += [Ratio(f"scoring, {name} / BERTScore", name, "bertscore") for name in VARIANTS]
        report_ratios(args, runs, ratios)


def bert_scorer(preset: str = "mini") -> Any:
    """Make BERTScore with the weights of a preset's encoder."""
    from bert_score import BERTScorer

    ours = MarsScorer(preset, variant="fast")
    spec, encoder = ours.settings.models.encoder, ours.calls.encoder()
    folder, _ = locate(spec).arguments(ours.runtime)
    layers = encoder[0].auto_model.config.num_hidden_layers
    scorer = BERTScorer(model_type=folder, num_layers=layers, idf=False)
    # BERTScore truncates texts by this length, which a folder does not tell.
    scorer._tokenizer.model_max_length = encoder.max_seq_length
    return scorer


if __name__ == "__main__":
    main()
