"""The scores said once more, plainly: one text, one token at a time; no batch, no store, no numpy.

All constants are literals, and nothing is imported from the package: a change of any of them there changes a score
that is compared with one of these.
"""

import copy
import functools
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

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
        states = twin(encoder[0].auto_model)(**fed, output_hidden_states=True).hidden_states
    middle = states[round(2 * (len(states) - 1) / 3)][0].double()
    last = states[-1][0].double()
    directions = [low / low.norm() + high / high.norm() for low, high in zip(middle, last, strict=True)]
    return directions[1:-1]


@functools.cache
def twin(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of a model, as transformers leaves hooks in one that was asked for its hidden states."""
    return copy.deepcopy(model)


def angle(left: torch.Tensor, right: torch.Tensor) -> float:
    return ((left @ right) / (left.norm() * right.norm())).item()


@functools.cache
def cosine(encoder: Any, left: str, right: str) -> float:
    return angle(vector(encoder, left), vector(encoder, right))


@functools.cache
def recall(encoder: Any, candidate: str, reference: str) -> float:
    """How much of a reference's tokens the candidate holds."""
    tokens, others = token_vectors(encoder, candidate), token_vectors(encoder, reference)
    if not tokens or not others:
        return 0.0
    return sum(max(angle(token, other) for other in tokens) for token in others) / len(others)


def parts(context: str) -> list[str]:
    """Of each passage as few parts of at most a hundred words as possible, about equally long."""
    windows = []
    for passage in context.split("\x1e"):
        words = passage.split()
        count = (len(words) + 99) // 100
        starts = [round(number * len(words) / count) for number in range(count)]
        windows += [
            " ".join(words[start:end]) for start, end in zip(starts, [*starts[1:], len(words)], strict=True)
        ]
    return windows


def nearness(encoder: Any, text: str, context: str) -> float:
    """Cosine with the part of the context that is the most similar."""
    return max(cosine(encoder, text, part) for part in parts(context))


# Language models


def encode(tokenizer: Any, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)


@functools.cache
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
    repetitions = [word in words[:index][-10:] for index, word in enumerate(words)]
    return sum(repetitions) / len(words) if words else 0.0


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


def stated(sentence: str) -> str:
    """What a sentence states, for texts without markup, citations, emoji and other addition than such openings."""
    text = tidy(sentence)
    while opening := re.match(r"(?:- |yes, |yes\. |so, |well: |in short, )(?=.)", text, re.IGNORECASE):
        text = text[opening.end() :]
    if text.endswith("?"):
        return text
    text = text.rstrip(" .!\u2026")
    return f"{text[:1].upper()}{text[1:]}."


def tidy(text: str) -> str:
    """A text with the signs of a keyboard."""
    for sign, usual in {"\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2014": "-", "\u2026": "."}.items():
        text = text.replace(sign, usual)
    return re.sub(r" (?=[.,;:!?])", "", " ".join(text.split()))


def is_said(statement: str, premise: str) -> bool:
    """Whether a premise, or one of its sentences, has the words of a statement and no others."""
    said = [stated(text) for text in (premise, *sentences(premise))]
    return any((plain(text), "?" in text) == (plain(statement), "?" in statement) for text in said)


def stating(candidate: str) -> list[str]:
    """The sentences that are judged: those of two words or more, or else those of one."""
    tidied = "\n".join(map(tidy, candidate.splitlines()))
    counted = [(sentence, len(plain(stated(sentence)))) for sentence in sentences(tidied)]
    return [sentence for sentence, words in counted if words > 1] or [
        sentence for sentence, words in counted if words
    ]


def premise(encoder: Any, sentence: str, passages: Sequence[Sequence[str]]) -> str:
    """A passage of at most 150 words as a whole; of others the nearest part and, in turn, those after and before.

    These have 100 words at most; only a part by itself may have more.
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
        able = [(start, stop) for start, stop in able if words(passage[start:stop]) <= 100]
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


class Judged(NamedTuple):
    sentence: str
    supported: float
    denials: dict[str, tuple[float, str]]  # how much the context or a reference contradicts it, and what of it

    def denial(self, certain: float, likely: float, by: Sequence[str] = ("context", "reference")) -> Any:
        """What contradicts it most, if that is certain; where both are asked, the other must agree; or None.

        No question is contradicted. ``by`` are those that are believed.
        """
        sure = [self.denials[name] for name in by if name in self.denials and self.denials[name][0] >= certain]
        is_likely = all(contradicted >= likely for contradicted, _ in self.denials.values())
        return max(sure) if sure and is_likely and not stated(self.sentence).endswith("?") else None


def judgements(
    models: dict[str, Any], candidate: str, references: Sequence[str], context: str, task: str
) -> list[Judged]:
    """What is said of the first twenty sentences by the context of a summary, or else by the references.

    A summary that holds three quarters of a reference is judged by these, too. Other texts that hold less are not
    judged, nor are replies, records, and texts without that which judges them.
    """
    close = any(recall(models["encoder"], candidate, reference) >= 0.75 for reference in references)
    if not (context if task == "summary" else close and task == "text"):
        return []
    passages = {
        "context": [sentences(text) for text in context.split("\x1e") if text.strip()],
        "reference": [sentences(reference) for reference in references],
    }
    judged = []
    for sentence in stating(candidate)[:20]:
        asked = ["context", "reference"] if task == "summary" and close else ["context"]
        if task == "text":
            asked = ["reference"]
        premises = [premise(models["encoder"], sentence, passages[name]) for name in asked]
        found = [shares(models["entailment_model"], text, stated(sentence)) for text in premises]
        denials = {
            name: (contradicted, text)
            for name, text, (_, contradicted) in zip(asked, premises, found, strict=True)
        }
        judged.append(Judged(sentence, found[0][0], denials))
    return judged


def shares(model: Any, premise: str, statement: str) -> tuple[float, float]:
    """Of entailment and of contradiction; what is said word for word is entailed."""
    return (1.0, 0.0) if is_said(statement, premise) else probabilities(*model, tidy(premise), statement)


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
    verdicts: tuple[float, float] = (math.inf, math.inf),
    by: Sequence[str] = ("context", "reference"),
    belief: float = 0.5,
) -> float:
    """The score of a row; `fast` has no likelihood.

    Args:
        models: encoder, language model and NLI model.
        candidate: not yet prepared, like the context.
        references: prepared.
        context: with its passages.
        task: "text", "summary", "dialogue" or "data".
        samples: prepared.
        likelihood: weight.
        context_weight: largest weight of the context.
        verdicts: which probability of a contradiction is certain, and which is likely.
        by: what can be certain that a sentence is contradicted.
        belief: which share of its weight the support of a summary gets.
    """
    candidate, context = candidate.strip(), context.strip()
    if not candidate:
        return 0.0
    encoder = models["encoder"]
    share = likely_share = 1.0
    if references:
        value = max(recall(encoder, candidate, reference) for reference in references)
        words = sum(len(reference.split()) for reference in references) / len(references)
        share, likely_share = words / (words + 3), words**2 / (words**2 + 20**2)
    if not references:
        total, value = context_weight * nearness(encoder, candidate, context), 0.0
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
        given, alone = (log_probability(*models["language_model"], text, candidate) for text in (context, ""))
        added = min(given - alone, 2.5) if references else given - alone
        total += likelihood * likely_share * (0.5 * alone + added)
    repetition = repeated(candidate)
    if task == "dialogue" and references and len(plain(candidate)) >= 5:
        repetition = min(1.0, repetition + copied(candidate, context))
    total -= 0.3 * repetition
    judged = judgements(models, candidate, references, context, task)
    denied = [one.denial(*verdicts, by) is not None for one in judged]
    lost = 0.5
    if task == "summary":
        lost = 0.5 if len(sentences(context)) > 1 else 0.0
        supported = [0.0 if denial else one.supported for one, denial in zip(judged, denied, strict=True)]
        total += 0.2 * belief * share_of(supported)
    return total - lost * share_of(denied) * max(0.0, total)


def share_of(values: Iterable[float]) -> float:
    """Their mean, or 0 if there are none."""
    found = list(values)
    return sum(found) / len(found) if found else 0.0


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
