"""The scores said once more, plainly: one text, one token at a time; no batch, no store, no numpy.

All constants are literals, and nothing is imported from the package: a change of any of them there changes a score
that is compared with one of these.
"""

import functools
import itertools
import math
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

# The constants of Algorithm 2 with its planner, for an infiller that takes them as a configuration.
INFILLING = SimpleNamespace(
    sigma=3,
    max_context_tokens=2048,
    planner="self",
    plan_step=0.02,
    plan_iterations=3,
    plan_temperature=1.3,
    plan_norm_exponent=1.0,
    plan_fusion=1.0,
)


# Encoders


@functools.cache
def vector(encoder: Any, text: str) -> torch.Tensor:
    return encoder.encode([text], convert_to_tensor=True)[0].double()


@functools.cache
def token_vectors(encoder: Any, text: str) -> list[torch.Tensor]:
    """Of a text's tokens, without those of the tokenizer's begin and end: means of directions in two layers.

    These are the last one and that at two thirds of the depth.
    """
    fed = encoder.tokenizer(text.strip(), return_tensors="pt", truncation=True, max_length=encoder.max_seq_length)
    with torch.no_grad():
        states = encoder[0].auto_model(**fed, output_hidden_states=True).hidden_states
    middle = states[round(2 * (len(states) - 1) / 3)][0].double()
    last = states[-1][0].double()
    directions = [lower / lower.norm() + upper / upper.norm() for lower, upper in zip(middle, last, strict=True)]
    return directions[1:-1]


def angle(left: torch.Tensor, right: torch.Tensor) -> float:
    return ((left @ right) / (left.norm() * right.norm())).item()


def cosine(encoder: Any, left: str, right: str) -> float:
    return angle(vector(encoder, left), vector(encoder, right))


def recall(encoder: Any, candidate: str, reference: str) -> float:
    """How much of a reference's tokens the candidate holds."""
    written, wanted = token_vectors(encoder, candidate), token_vectors(encoder, reference)
    if not written or not wanted:
        return 0.0
    return sum(max(angle(token, other) for other in written) for token in wanted) / len(wanted)


def parts(context: str) -> list[str]:
    """Of each passage as few parts of at most a hundred words as possible, about equally long."""
    texts = []
    for passage in context.split("\x1e"):
        words = passage.split()
        count = (len(words) + 99) // 100
        starts = [round(number * len(words) / count) for number in range(count)]
        texts += [" ".join(words[start:end]) for start, end in zip(starts, [*starts[1:], len(words)], strict=True)]
    return texts


def nearness(encoder: Any, text: str, context: str) -> float:
    """Cosine with the part of the context that is the most similar."""
    return max(cosine(encoder, text, part) for part in parts(context))


# Language models


def encode(tokenizer: Any, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)


def surprisal(model: Any, tokenizer: Any, context: str, text: str, most: int | None = None) -> float:
    """The mean over a text's tokens given ``most`` tokens of a context; where there is no room it is cut first."""
    context, window = context.strip().replace("\x1e", "\n\n"), model.config.max_position_embeddings
    ids = encode(tokenizer, f" {text}" if context else text)[: min(window - 1, 1024)]
    before = encode(tokenizer, context)[:most]
    if not before or tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]:
        before = [tokenizer.bos_token_id, *before]
    before = before[: window - len(ids)]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([before + ids])).logits[0].double()
    steps = torch.log_softmax(logits, -1)
    return -sum(steps[len(before) - 1 + index, token].item() for index, token in enumerate(ids)) / len(ids)


def log_probability(model: Any, tokenizer: Any, context: str, text: str) -> float:
    """At least that of a uniform guess."""
    return max(-surprisal(model, tokenizer, context, text, 2048), -math.log(model.config.vocab_size))


# Words


def plain(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def repeated(text: str) -> float:
    """The share of words of four letters or more that are among the ten such words before them."""
    words = [word for word in re.findall(r"\w+(?:'\w+)?", text.lower().replace("\u2019", "'")) if len(word) > 3]
    again = [word in words[:index][-10:] for index, word in enumerate(words)]
    return sum(again) / len(words) if words else 0.0


def copied(candidate: str, context: str) -> float:
    """The share of a candidate's words in runs of five or more that the context has, too."""
    words, others = plain(candidate), plain(context)
    length = min(5, len(words))
    indices = set()
    for start in range(len(words) - length + 1):
        for other in range(len(others) - length + 1):
            if words[start : start + length] == others[other : other + length]:
                indices |= set(range(start, start + length))
    return len(indices) / len(words) if words else 0.0


def sentences(text: str) -> list[str]:
    """For texts in which each full stop, question mark and exclamation mark is followed by a space."""
    return [
        sentence for line in text.splitlines() for sentence in re.split(r"(?<=[.!?]) +", line.strip()) if sentence
    ]


# Natural language inference


def split_at_breaks(context: str, task: str) -> list[list[str]]:
    """The passages of a context, each as its sentences or, in a dialogue, its turns."""
    passages = [text.split("\n") if task == "dialogue" else sentences(text) for text in context.split("\x1e")]
    return [passage for passage in passages if any(passage)]


def premise(encoder: Any, sentence: str, passages: Sequence[Sequence[str]]) -> str:
    """A passage of at most 150 words as a whole; of others the nearest part and, in turn, those after and before.

    These have 150 words at most; only a part by itself may have more.
    """

    def words(chosen: Sequence[str]) -> int:
        return sum(len(part.split()) for part in chosen)

    if len(passages) == 1 and words(passages[0]) <= 150:
        return " ".join(passages[0])
    places = [(passage, place) for passage in passages for place in range(len(passage))]
    passage, first = max(places, key=lambda place: cosine(encoder, sentence, place[0][place[1]]))
    end = first + 1
    after_is_next = True
    while True:
        after, before = (first, end + 1), (first - 1, end)
        steps = [after, before] if after_is_next else [before, after]
        able = [step for step in steps if step[0] >= 0 and step[1] <= len(passage)]
        able = [(start, stop) for start, stop in able if words(passage[start:stop]) <= 150]
        if not able:
            return " ".join(passage[first:end])
        after_is_next = able[0] == before
        first, end = able[0]


@functools.cache
def probabilities(model: Any, tokenizer: Any, premise: str, hypothesis: str) -> tuple[float, float]:
    """Of entailment and of contradiction; the model's window is the tokenizer's."""
    tokens = tokenizer(
        premise, hypothesis, truncation=True, max_length=tokenizer.model_max_length, return_tensors="pt"
    )
    with torch.no_grad():
        classes = model(**tokens).logits.double().softmax(-1)[0].tolist()
    labels = [label.lower()[:6] for _, label in sorted(model.config.id2label.items())]
    return classes[labels.index("entail")], classes[labels.index("contra")]


def judgements(
    models: dict[str, Any], candidate: str, references: Sequence[str], context: str, task: str
) -> tuple[float, float]:
    """The mean over the first twenty sentences of how much they are supported, and of how much contradicted.

    The context is asked of a summary, and where there is no reference.
    """
    supported, contradicted = [], []
    judged = sentences(candidate)[:20] or [candidate]
    asked = task == "summary" or not references
    for sentence in judged:
        shares = []
        for passages in (
            [sentences(reference) for reference in references],
            split_at_breaks(context, task) if asked else [],
        ):
            text = premise(models["encoder"], sentence, passages) if passages else ""
            copied = bool(text) and sentence in text
            says = (
                (1.0, 0.0)
                if copied
                else probabilities(*models["entailment_model"], text, sentence)
                if text
                else (0.0, 0.0)
            )
            shares.append(says)
        by_reference, by_context = shares
        supported.append(by_context[0])
        contradicted.append(by_reference[1] * (1 - by_context[0]) if references else by_context[1])
    return sum(supported) / len(judged), sum(contradicted) / len(judged)


def inference(supported: float, contradicted: float, closest: float, task: str) -> float:
    """What a score gains and loses by natural language inference."""
    loss = 0.6 * max(0.0, closest) ** 8 * contradicted
    return {"summary": 0.1 * supported - loss, "data": 0.0}.get(task, -loss)


# plus and fast


def plus(
    models: dict[str, Any],
    candidate: str,
    references: Sequence[str],
    context: str,
    task: str = "text",
    samples: Sequence[str] = (),
    *,
    likelihood: float = 0.15,
    context_weight: float = 0.5,
) -> float:
    """The score of a row; `fast` has no likelihood."""
    candidate, context = candidate.strip(), context.strip()
    if not candidate:
        return 0.0
    encoder, closest = models["encoder"], 0.0
    share = likely_share = 1.0
    if references:
        closest = value = max(recall(encoder, candidate, reference) for reference in references)
        words = sum(len(reference.split()) for reference in references) / len(references)
        share, likely_share = words / (words + 3), words**2 / (words**2 + 20**2)
    if not references:
        closest = nearness(encoder, candidate, context)
        total, value = context_weight * closest, 0.0
    elif not (context and context_weight):
        total = value
    elif task == "data":
        meaning = max(cosine(encoder, candidate, reference) for reference in references)
        total = (1 - context_weight) * value + context_weight * meaning
    else:
        closeness = sum(nearness(encoder, reference, context) for reference in references) / len(references)
        share *= 1 if closeness <= 0.7 else max(0.0, (1 - closeness) / 0.3)
        weight = context_weight * share
        total = (1 - weight) * value + weight * nearness(encoder, candidate, context)
    samples = [sample for sample in samples if sample != candidate]
    if samples:
        best = max(recall(encoder, candidate, sample) for sample in samples)
        total += 0.2 * share**2 * (max(0.0, best - value) if references else best)
    if likelihood and task != "dialogue":
        in_context, alone = (log_probability(*models["language_model"], text, candidate) for text in (context, ""))
        added = min(in_context - alone, 2.5) if references else in_context - alone
        total += likelihood * likely_share * (0.5 * alone + added)
    repetition = repeated(candidate)
    if task == "dialogue" and references and len(plain(candidate)) >= 5:
        repetition = min(1.0, repetition + copied(candidate, context))
    total -= 0.3 * repetition
    return total + inference(*judgements(models, candidate, references, context, task), closest, task)


# paper


def common(words: Sequence[str], context: Sequence[str]) -> set[int]:
    """The indices of the words on the longest common subsequence, of which there is to be one alone."""
    for size in range(len(words), 0, -1):
        for indices in itertools.combinations(range(len(words)), size):
            rest = iter(context)
            if all(words[index] in rest for index in indices):
                return set(indices)
    return set()


def masked(priorities: Sequence[float], costs: Sequence[int], budget: int) -> tuple[int, ...]:
    """The words of largest total priority within a budget; of equally good ones the fewest, then the leftmost."""
    subsets = (subset for size in range(budget + 1) for subset in itertools.combinations(range(len(costs)), size))
    able = [subset for subset in subsets if sum(costs[index] for index in subset) <= budget]
    return min(
        able, key=lambda subset: (-round(sum(priorities[index] for index in subset), 6), len(subset), subset)
    )


def templates(
    reference: str, context: str, corpus: Sequence[str], pipeline: Any, tenths: Sequence[int] = (2, 4, 6)
) -> list[str]:
    """A reference with its blanks as "____", at some mask ratios.

    Args:
        reference: of at most a dozen words.
        context: in which no word of the reference stands twice.
        corpus: different references, over which document frequencies are counted.
        pipeline: of spaCy.
        tenths: the mask ratios.
    """
    words = list(pipeline(reference))
    documents = [{word.text.lower() for word in pipeline(text)} for text in corpus]
    lower = [word.text.lower() for word in words]
    counts = [sum(word in document for document in documents) for word in lower]
    idf = [-math.log(min(max(count, 0.5), len(corpus) - 0.5) / len(corpus)) for count in counts]
    alpha = {"ADJ": 4, "ADV": 3, "NOUN": 2, "PROPN": 2}
    priorities = [alpha.get(word.pos_, 1) / weight for word, weight in zip(words, idf, strict=True)]
    shared = common(lower, [word.text.lower() for word in pipeline(context)])
    costs = [10 if index in shared else 1 for index in range(len(words))]
    made = []
    for ratio in tenths:
        chosen = masked(priorities, costs, max(1, ratio * len(words) // 10))
        text = ""
        for index, word in enumerate(words):
            space = words[index - 1].whitespace_ if index else ""
            if index not in chosen:
                text += space + word.text
            elif index - 1 not in chosen:
                text += space + "____"
        made.append(text)
    return made


def paper(encoder: Any, candidate: str, texts: Sequence[Sequence[str]], q: float = 0.8) -> list[float]:
    """The score against each reference (Eq. 7), which is followed by its infills; a row's is the largest."""
    scores = []
    for same in texts:
        weights = [q**index for index in range(len(same))]
        cosines = [cosine(encoder, candidate, text) for text in same]
        scores.append(sum(map(float.__mul__, weights, cosines)) / sum(weights))
    return scores
