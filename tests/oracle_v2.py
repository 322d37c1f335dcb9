"""The plain form of variants v2 and v2-lm: one text and one token at a time; no batch, no store, no numpy."""

from __future__ import annotations

import math
import re

import oracle
import torch

from mars_score.settings import Settings


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
    """As few parts as a hundred words a part allow, about equally long."""
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


def log_probability(model, tokenizer, context: str, text: str) -> float:
    """The mean of a text's tokens behind a context, which is cut from its end; at least a uniform guess's."""
    context = context.strip()
    ids = oracle.encode(tokenizer, f" {text}" if context else text)
    before = oracle.encode(tokenizer, context)
    bos = tokenizer.bos_token_id
    if not before or tokenizer("")["input_ids"][:1] == [bos]:
        before = [bos, *before]
    before = before[: oracle.window(model) - len(ids)]
    return max(-math.log(oracle.perplexity(model, before, ids)), -math.log(model.config.vocab_size))


def score(candidate: str, texts_of_references: list[list[str]], context: str, settings: Settings) -> float:
    """Of a row; ``texts_of_references``: each reference and its augmentations."""
    candidate, context = candidate.strip(), context if settings.use_context else ""
    if not candidate:
        return 0.0
    encoder, how = settings.models.encoder, settings.similarity
    of_references = []
    for texts in texts_of_references:
        recalls = [recall(encoder, candidate, text) for text in texts]
        of_references.append((recalls[0] + max(recalls)) / 2)
    total = max(of_references)
    words = [len(texts[0].split()) for texts in texts_of_references]
    mean_words = sum(words) / len(words)
    credit = 1.0
    if context.strip() and how.context_weight:
        near = max(oracle.cosine(encoder, candidate, part) for part in parts(context))
        of_references = max(
            oracle.cosine(encoder, texts[0], part) for texts in texts_of_references for part in parts(context)
        )
        if of_references < 0.5:
            credit = 1 - how.copy_discount * copied(candidate, context) * (1 - 2 * of_references)
        share = how.context_weight * mean_words / (mean_words + 3)
        total = (1 - share) * total + share * near * credit
    if how.likelihood_weight:
        given, alone = (log_probability(*settings.models.language_model, one, candidate) for one in (context, ""))
        share = how.likelihood_weight * mean_words**2 / (mean_words**2 + 20**2)
        total += share * (alone / 2 + (given - alone) * credit)
    return total
