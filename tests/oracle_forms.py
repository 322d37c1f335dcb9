"""The plain form of variants plus and fast: one text, one token at a time; no batch, no store, no numpy."""

import functools
import math
import re
from collections.abc import Sequence

import oracle
import torch

from benchmarks.sequential import encode
from mars_score.settings import Settings


@functools.cache
def token_vectors(encoder, text: str) -> list[torch.Tensor]:
    """The last hidden states of a text's tokens, without those of the tokenizer's begin and end."""
    fed = encoder.tokenizer(text.strip(), return_tensors="pt", truncation=True, max_length=encoder.max_seq_length)
    with torch.no_grad():
        states = encoder[0].auto_model(**fed).last_hidden_state[0]
    return list(states[1:-1].double())


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return ((one @ other) / (one.norm() * other.norm())).item()


def recall(encoder, candidate: str, reference: str) -> float:
    """How much of a reference's tokens the candidate holds."""
    of_candidate, of_reference = token_vectors(encoder, candidate), token_vectors(encoder, reference)
    if not of_candidate or not of_reference:
        return 0.0
    nearest = [max(cosine(token, other) for other in of_candidate) for token in of_reference]
    return sum(nearest) / len(nearest)


def parts(context: str) -> list[str]:
    """As few parts of at most a hundred words as possible, about equally long."""
    words = context.split()
    count = (len(words) + 99) // 100
    if not count:
        return []
    starts = [round(number * len(words) / count) for number in range(count)]
    return [" ".join(words[start:end]) for start, end in zip(starts, [*starts[1:], len(words)], strict=True)]


def copied(candidate: str, context: str) -> float:
    """The share of a candidate's words in runs of five or more that the context has."""
    words, others = (re.findall(r"\w+", text.lower()) for text in (candidate, context))
    length = min(5, len(words))
    places = set()
    for start in range(len(words) - length + 1):
        for other in range(len(others) - length + 1):
            if words[start : start + length] == others[other : other + length]:
                places |= set(range(start, start + length))
    return len(places) / len(words) if words else 0.0


def surprisal(model, tokenizer, context: str, text: str, max_context_tokens: int | None = None) -> float:
    """The mean over a text's tokens given a context; both are cut from their ends, the context first."""
    context, window = context.strip(), oracle.window(model)
    ids = encode(tokenizer, f" {text}" if context else text)[: window - 1]
    before = encode(tokenizer, context)[:max_context_tokens]
    bos = tokenizer.bos_token_id
    if not before or tokenizer("")["input_ids"][:1] == [bos]:
        before = [bos, *before]
    return math.log(oracle.perplexity(model, before[: window - len(ids)], ids))


def log_probability(model, tokenizer, context: str, text: str) -> float:
    """As ``surprisal``, but at least a uniform guess's."""
    return max(-surprisal(model, tokenizer, context, text), -math.log(model.config.vocab_size))


def score(
    candidate: str,
    texts_of_references: list[list[str]],
    context: str,
    settings: Settings,
    task: str = "",
    samples: Sequence[str] = (),
) -> float:
    """Of a row; ``texts_of_references``: each reference and its augmentations; ``samples``: of its context."""
    candidate, context = candidate.strip(), context.strip() if settings.use_context else ""
    if not candidate:
        return 0.0
    encoder, how = settings.models.encoder, settings.similarity
    similarity = recall if how.matching == "tokens" else oracle.cosine
    references = [texts[0] for texts in texts_of_references]
    share = likely_share = 1.0
    if references:
        values = [[similarity(encoder, candidate, text) for text in texts] for texts in texts_of_references]
        value = max((of_texts[0] + max(of_texts)) / 2 for of_texts in values)
        words = sum(len(reference.split()) for reference in references) / len(references)
        share, likely_share = words / (words + 3), words**2 / (words**2 + 20**2)
    if not references:
        total = how.context_weight * nearness(encoder, candidate, context)
    elif not (context and how.context_weight):
        total = value
    elif task == "data":
        meaning = max(oracle.cosine(encoder, candidate, reference) for reference in references)
        total = (1 - how.context_weight) * value + how.context_weight * meaning
    else:
        closeness = sum(nearness(encoder, reference, context) for reference in references) / len(references)
        share *= 1 if closeness <= 0.7 else max(0.0, (1 - closeness) / 0.3)
        weight = how.context_weight * share
        total = (1 - weight) * value + weight * nearness(encoder, candidate, context)
    if samples:
        best = max(similarity(encoder, candidate, sample) for sample in samples)
        total += how.sample_weight * share**2 * (max(0.0, best - value) if references else best)
    if how.likelihood_weight and task != "dialogue":
        given, alone = (
            log_probability(*settings.models.language_model, text, candidate) for text in (context, "")
        )
        lift = min(given - alone, 2.5) if references else given - alone
        total += how.likelihood_weight * likely_share * (alone / 2 + lift)
    in_dialogue = task == "dialogue" and references
    return total - how.repetition_penalty * repeated(candidate, context if in_dialogue else "")


def repeated(text: str, dialogue: str = "") -> float:
    """The share of words of four letters or more among the ten such words before them, and what is copied."""
    words = [word for word in re.findall(r"\w+(?:'\w+)?", text.lower().replace("\u2019", "'")) if len(word) > 3]
    found = 0
    for place, word in enumerate(words):
        found += word in words[:place][-10:]
    share = found / len(words) if words else 0.0
    return min(1.0, share + copied(text, dialogue)) if len(re.findall(r"\w+", text)) >= 5 else share


def nearness(encoder, text: str, context: str) -> float:
    """Cosine with the part of the context that is the most similar."""
    return max(oracle.cosine(encoder, text, part) for part in parts(context))
