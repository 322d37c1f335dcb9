"""Samples per second against a plain loop over contexts that calls ``generate`` of transformers.

Both draw the same number of samples from the same prompts with the same model, temperature and top_p, and always
up to the same number of tokens: stop tokens and line breaks are switched off, so that the work is equal. On a CPU
its time is counted, which other jobs on the machine change less than the time that passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.common import in_turns, language_model, median_ratio, medians, parse, report, speed_parser
from benchmarks.texts import invented
from mars_score.augment.sampling.jobs import SampleJob
from mars_score.augment.sampling.prompts import make_prompt
from mars_score.augment.sampling.sampler import Sampler
from mars_score.models.engine.language_model import CausalLanguageModel
from mars_score.store.results import digest

TEMPERATURE, TOP_P = 0.9, 0.95


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=1)
    options.add_argument("--contexts", type=int, default=16)
    options.add_argument("--samples", type=int, default=8, help="for each context")
    options.add_argument("--tokens", type=int, default=32, help="of each sample")
    args = parse(options, contexts=64, repeats=3)
    model, tokenizer = language_model()
    wrapped = CausalLanguageModel(model, tokenizer)
    prompts = [
        make_prompt(wrapped.codec, text.context, "dialogue", wrapped.window - args.tokens).tokens
        for text in invented(args.contexts)
    ]
    sampler = Sampler(wrapped, TEMPERATURE, TOP_P)
    sampler.stops = frozenset()
    sampler.ends_line = lambda tokens: False  # type: ignore[method-assign]
    jobs = [
        SampleJob(prompt, digest(number, place), args.tokens)
        for place, prompt in enumerate(prompts)
        for number in range(args.samples)
    ]
    settings: dict[str, Any] = {
        "do_sample": True,
        "temperature": TEMPERATURE,
        "top_p": TOP_P,
        "top_k": 0,
        "min_new_tokens": args.tokens,
        "max_new_tokens": args.tokens,
        "pad_token_id": tokenizer.eos_token_id,
    }

    def each_context() -> None:
        """One call for each context, which returns all its samples."""
        for prompt in prompts:
            model.generate(
                torch.tensor([prompt], device=model.device), num_return_sequences=args.samples, **settings
            )

    def each_sample() -> None:
        """One call for each sample."""
        for prompt in prompts:
            for _ in range(args.samples):
                model.generate(torch.tensor([prompt], device=model.device), **settings)

    def timed(work: Callable[[], object]) -> Callable[[], float | None]:
        def run() -> float | None:
            start = time.process_time()
            work()
            return time.process_time() - start if model.device.type == "cpu" else None

        return run

    runs = {"ours": lambda: sampler.sample(jobs), "each context": each_context, "each sample": each_sample}
    seconds = in_turns({name: timed(work) for name, work in runs.items()}, args.repeats)
    figures = {"samples": len(jobs), **medians(seconds)}
    for name, target in (("each sample", 4.0), ("each context", None)):
        ratio = median_ratio(seconds[name], seconds["ours"])
        report(args, f"samples per second / a generate call for {name}", ratio, target, figures)


if __name__ == "__main__":
    main()
