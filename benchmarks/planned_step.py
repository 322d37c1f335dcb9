"""Compare a planned decoding step with a plain one, and with k + 1 forward and k backward passes.

A forward pass is transformers' own, with logits, of one token per row after a cache. A backward pass computes the
gradient of the reward with respect to the cached keys and values by plain autograd. The floor is the model's
matrix products alone, with the same shapes, as often as the step needs them.
"""

import statistics
from collections.abc import Callable

import torch
from torch import Tensor
from transformers import DynamicCache

from benchmarks.arithmetic import matrix_rate, synchronise
from benchmarks.common import (
    in_turns,
    language_model,
    median_ratio,
    medians,
    parse,
    report,
    seconds_of,
    speed_parser,
)
from mars_score.infilling.planning import plain_step, planned_step
from mars_score.metrics.paper import PaperConfig
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.running import ordinary_mode

FUTURE = 6  # tokens of the reward


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=5)
    options.add_argument("--batch-size", type=int, default=32)
    options.add_argument("--lengths", type=int, nargs="+", default=[64], help="cached tokens of each row")
    args = parse(options, lengths=[64, 256], repeats=15)
    model = CausalLanguageModel(*language_model())
    config = PaperConfig(planner="self")
    backwards = config.plan_iterations
    for length in args.lengths:
        with ordinary_mode():
            runs = _runs(model, args.batch_size, length, config)
            in_turns(runs, 1)  # warm-up
            seconds = in_turns(runs, args.repeats)
        parts = [
            (backwards + 1) * forward + backwards * backward
            for forward, backward in zip(seconds["forward"], seconds["backward"], strict=True)
        ]
        figures = {"rows": args.batch_size, "cached_tokens": length, **medians(seconds)}
        name = f"planned step after {length} tokens"
        report(args, f"{name} / plain step", median_ratio(seconds["planned"], seconds["plain"]), 8.0, figures)
        ratio = median_ratio(seconds["planned"], parts)
        report(args, f"{name} / ({backwards + 1} forwards + {backwards} backwards)", ratio, 1.2, figures)
        floor = [(2 * backwards + 1) * products for products in seconds["products"]]
        weights = sum(weight.numel() for weight in _matrices(model))
        figures = {
            "rows": args.batch_size,
            "gigaflop": 2e-9 * weights * args.batch_size * (2 * backwards + 1),
            "gigabytes_of_weights": 4e-9 * weights * (2 * backwards + 1),
            "gigaflop_a_second": 2e-9 * weights * args.batch_size / statistics.median(seconds["products"]),
            "gigaflop_a_second_of_large_products": 1e-9 * matrix_rate(model.device),
            "milliseconds_a_row": 1000 * statistics.median(seconds["planned"]) / args.batch_size,
        }
        report(args, f"{name} / its matrix products", median_ratio(seconds["planned"], floor), None, figures)


def _matrices(model: CausalLanguageModel) -> list[Tensor]:
    return [layer.weight for layer in model.model.modules() if isinstance(layer, torch.nn.Linear)]


def _runs(
    model: CausalLanguageModel, rows: int, length: int, config: PaperConfig
) -> dict[str, Callable[[], float]]:
    """Return the five timed functions, on one cache of random tokens."""
    generator = torch.Generator().manual_seed(0)
    texts = torch.randint(model.vocabulary, (rows, length), generator=generator).tolist()
    tokens = torch.randint(model.vocabulary, (rows,), generator=generator).to(model.device)
    futures = [torch.randperm(model.vocabulary, generator=generator)[:FUTURE].sort()[0].tolist() for _ in texts]
    cache = model.new_cache(rows, length + 1)
    cache.lengths = [0] * rows
    model.extend(cache, texts)
    plain = DynamicCache()
    model.model(input_ids=torch.tensor(texts, device=model.device), past_key_values=plain, use_cache=True)
    leaves = [state.requires_grad_() for layer in plain.layers for state in (layer.keys, layer.values)]
    future = torch.tensor(futures, device=model.device)
    inputs = {size: torch.randn(rows, size) for size in {weight.shape[1] for weight in _matrices(model)}}
    inputs = {size: states.to(model.device) for size, states in inputs.items()}

    def forward() -> Tensor:
        past = DynamicCache(list(zip(leaves[::2], leaves[1::2], strict=True)))
        logits: Tensor = model.model(input_ids=tokens[:, None], past_key_values=past, use_cache=True).logits[:, -1]
        return logits

    def backward() -> float:
        with torch.enable_grad():
            planned = torch.log_softmax(forward() / config.plan_temperature, -1)
            reward = planned.gather(1, future).mean(1).sum()
        return timed(lambda: torch.autograd.grad(reward, leaves))

    def timed(work: Callable[[], object]) -> float:
        def complete() -> None:
            work()
            synchronise(model.device)

        synchronise(model.device)
        return seconds_of(complete)

    return {
        "plain": lambda: timed(lambda: plain_step(model, cache, tokens)),
        "planned": lambda: timed(lambda: planned_step(model, cache, tokens, futures, config)),
        "forward": lambda: timed(forward),
        "backward": backward,
        "products": lambda: timed(lambda: [inputs[one.shape[1]] @ one.T for one in _matrices(model)]),
    }


if __name__ == "__main__":
    main()
