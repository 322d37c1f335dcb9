"""Scoring new candidates against kept references: variants of MARS against the paper's form and against BERTScore.

All have their models loaded and score the same (candidate, reference) pairs, new candidates in each run. MARS
finds augmented references and their embeddings in its store; BERTScore (no IDF, the same encoder's weights) reads
both texts of each pair. The texts are invented (see texts.py).
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

from benchmarks.common import (
    fresh_store,
    in_turns,
    median_ratio,
    medians,
    parse,
    progress,
    report,
    seconds_of,
    speed_parser,
)
from benchmarks.texts import invented
from mars_score import MarsScorer
from mars_score.models.wheels import wheel_folder
from mars_score.settings import resolve_settings

# With the largest ratio to the paper's form that is wanted.
VARIANTS = {"paper": None, "fast": 2.0, "plus": 8.0}


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=5)
    options.add_argument("--pairs", type=int, default=64)
    options.add_argument("--variants", default=",".join(VARIANTS), help="besides the paper's form, with commas")
    options.add_argument("--planner", choices=("self", "none"), default="none", help="of the kept augmentations")
    args = parse(options, pairs=256, repeats=9)
    variants = list(dict.fromkeys(["paper", *args.variants.split(",")]))
    texts = invented(args.pairs)
    references, contexts = [text.reference for text in texts], [text.context for text in texts]
    sets = count(1)
    bert_score = bert_scorer()
    with fresh_store() as store:
        scorers = {
            variant: MarsScorer("mini", variant=variant, store=store, planner=args.planner) for variant in variants
        }
        progress(f"augmenting {args.pairs} references")
        for scorer in scorers.values():
            scorer.score([text.candidate for text in texts], references, contexts)

        def ours(scorer: MarsScorer) -> float:
            new = _candidates(args.pairs, next(sets))
            return seconds_of(lambda: scorer.score(new, references, contexts))

        def theirs() -> float:
            new = _candidates(args.pairs, next(sets))
            return seconds_of(lambda: bert_score.score(new, references))

        runs = {variant: partial(ours, scorer) for variant, scorer in scorers.items()} | {"bertscore": theirs}
        in_turns(runs, 1)  # warm-up
        seconds = in_turns(runs, args.repeats)
    figures = {"pairs": args.pairs, **medians(seconds)}
    report(args, "scoring / BERTScore", median_ratio(seconds["paper"], seconds["bertscore"]), 1.0, figures)
    for variant in variants[1:]:
        ratio = median_ratio(seconds[variant], seconds["paper"])
        report(args, f"scoring, {variant} / the paper's form", ratio, VARIANTS[variant], figures)


def _candidates(count: int, seed: int) -> list[str]:
    return [text.candidate for text in invented(count, seed=seed)]


def bert_scorer() -> Any:
    """BERTScore with the weights of preset mini's encoder."""
    from bert_score import BERTScorer
    from transformers import AutoConfig

    folder = str(wheel_folder(resolve_settings("mini").models.encoder))
    config = AutoConfig.from_pretrained(folder)
    scorer = BERTScorer(model_type=folder, num_layers=config.num_hidden_layers, idf=False)
    # A folder does not say so, and BERTScore cuts texts by it.
    scorer._tokenizer.model_max_length = config.max_position_embeddings
    return scorer


if __name__ == "__main__":
    main()
