"""Average two differences of an NLI model: what it was before training, and after.

    python -m research.entailment.average BEFORE.safetensors AFTER.safetensors OUT.safetensors

What training on other texts brings stays for the most part, and what it unlearns comes back (Wortsman et al. 2022,
https://arxiv.org/abs/2109.01903). The mean of two differences of low rank is cut to a rank again.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor


def main() -> None:
    """Read, average and write."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("before", type=Path)
    options.add_argument("after", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--after", dest="share", type=float, default=0.6, help="share of AFTER (default: 0.6)")
    options.add_argument("--rank", type=int, default=64, help="of the matrices of the layers (default: 64)")
    args = options.parse_args()
    before, after = (
        {name: part.float() for name, part in load_file(path).items()} for path in (args.before, args.after)
    )
    mean = average(before, after, args.share, args.rank)
    save_file({name: tensor.half().contiguous() for name, tensor in mean.items()}, args.out)


def average(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float, rank: int
) -> dict[str, Tensor]:
    """Return the mean of two differences; what only one of them has is as it is there.

    Args:
        before: thin matrices ``up``, (out, rank), and ``down``, (rank, in), and whole tensors, by their names.
        after: the same.
        share: of ``after``.
        rank: of the matrices that are returned.
    """
    mean = {}
    for name in {**before, **after}:
        if name not in before or name not in after:
            mean[name] = (after if name in after else before)[name]
        elif name.endswith(".up"):
            down = name.removesuffix("up") + "down"
            product = share * after[name] @ after[down] + (1 - share) * before[name] @ before[down]
            mean[name], mean[down] = cut_to_rank(product, rank)
        elif not name.endswith(".down"):
            mean[name] = share * after[name] + (1 - share) * before[name]
    return mean


def cut_to_rank(product: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return the two thin matrices whose product is nearest to a matrix, with columns and rows of equal length."""
    left, values, right = torch.linalg.svd(product, full_matrices=False)
    root = values[:rank].sqrt()
    return left[:, :rank] * root, root[:, None] * right[:rank]


if __name__ == "__main__":
    main()
