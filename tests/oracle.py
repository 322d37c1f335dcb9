"""MARS said plainly: one reference, one blank, one token at a time, and no cleverness.

This is the readable statement of the method. The engine of ``mars_score.augment.infilling`` must choose the same
tokens and come within 1e-9 of these numbers in float64. Byte-level tokenizers only.
"""

import functools
import math
from dataclasses import dataclass, field

import torch
from transformers import DynamicCache

from mars_score.augment.masking.template import Template
from mars_score.settings import InfillingSettings, PlanningSettings, Settings, SimilaritySettings

NEWLINES = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")


@dataclass
class Tokens:
    """A piece of a template as the language model sees it."""

    text: str  # with the joining space if it comes first after a context
    ids: list[int]
    blank: bool


@dataclass
class Blank:
    """How one blank was filled."""

    generated: list[int] = field(default_factory=list)  # all b + sigma greedy tokens
    perplexities: list[float] = field(default_factory=list)  # of the first 1, 2, ... of them
    length: int = 0  # so many of them were chosen
    rewards: list[list[float]] = field(
        default_factory=list
    )  # per token: before the first step, ..., after the last


@dataclass
class Infilled:
    """A template's augmented reference and how it came about."""

    text: str
    infills: list[str]
    blanks: list[Blank]
    prompt: list[int]


def encode(tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def decode(tokenizer, ids: list[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def window(model) -> int:
    """Positions that can be used; RoBERTa's begin after the padding's."""
    unused = model.config.pad_token_id + 1 if model.config.model_type == "roberta" else 0
    return model.config.max_position_embeddings - unused


def cut_context(context: str, reference: str, end: int, tokenizer, settings: InfillingSettings) -> list[int]:
    """The context's first tokens: room is left for twice the reference and 64 tokens."""
    context = context.strip()
    reference_ids = encode(tokenizer, f" {reference}" if context else reference)
    limit = max(0, end - (2 * len(reference_ids) + 64))
    if settings.max_context_tokens is not None:
        limit = min(limit, settings.max_context_tokens)
    return encode(tokenizer, context)[:limit]


def tokenise(template: Template, tokenizer, *, after_context: bool) -> list[Tokens]:
    """Each piece by itself; after a context the first one owns the joining space."""
    texts = [piece.text for piece in template.pieces]
    if after_context:
        texts[0] = " " + texts[0]
    pieces = zip(texts, template.pieces, strict=True)
    return [Tokens(text, encode(tokenizer, text), piece.blank) for text, piece in pieces]


def make_prompt(context_ids: list[int], pieces: list[Tokens], tokenizer) -> list[int]:
    """Begin-of-text where there is no context or the tokenizer puts it, then the context."""
    bos = tokenizer.bos_token_id
    adds_bos = tokenizer("")["input_ids"][:1] == [bos]
    prompt = [bos, *context_ids] if adds_bos or not context_ids else context_ids
    first_block = [] if pieces[0].blank else pieces[0].ids
    if len(prompt) + len(first_block) < 2:  # else the first blank's cache would be empty
        prompt = [bos, *prompt]
    return prompt


def fit(pieces: list[Tokens], position: int, end: int, extra: int) -> list[Tokens]:
    """The pieces that fit below position ``end``; a blank takes ``extra`` tokens more than its own."""
    fitted = []
    for piece in pieces:
        size, room = len(piece.ids) + extra * piece.blank, end - position
        if size > room:
            if not piece.blank:
                fitted.append(Tokens(piece.text, piece.ids[:room], blank=False))
            break
        fitted.append(piece)
        position += size
    return fitted


@functools.cache
def token_texts(tokenizer) -> list[str]:
    return [decode(tokenizer, [token]) for token in range(len(tokenizer))]


@functools.cache
def special_tokens(tokenizer) -> set[int]:
    added = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
    return added | set(tokenizer.all_special_ids)


def is_allowed(text: str, reference: str, opening: str | None) -> bool:
    """Whether a token may be written; ``opening`` is the masked text if the token opens its blank."""
    if not NEWLINES.isdisjoint(text) and NEWLINES.isdisjoint(reference):
        return False
    if opening is None:
        return True
    if opening[0].isspace():
        return text[:1].isspace() and not text.isspace()
    return not text[:1].isspace()


def is_whole(text: str) -> bool:
    """Whether a text has no bytes that are a part of a character only."""
    return "\ufffd" not in text


def bar(
    scores: torch.Tensor, tokenizer, reference: str, opening: str | None, *, whole: bool = False
) -> torch.Tensor:
    """Scores of the next token, minus infinity where it cannot be part of the reference."""
    special = special_tokens(tokenizer)
    allowed = [
        token
        for token, text in enumerate(token_texts(tokenizer))  # ids beyond them (a padded vocabulary) stay barred
        if token not in special and is_allowed(text, reference, opening) and (is_whole(text) or not whole)
    ]
    barred = torch.full_like(scores, -math.inf)
    barred[allowed] = scores[allowed]
    return barred


def best(scores: torch.Tensor) -> int:
    """The highest; the lowest id of several."""
    return int((scores == scores.max()).nonzero()[0])


def cache_of(model, ids: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of ``ids``, layer by layer."""
    cache = DynamicCache()
    model(input_ids=torch.tensor([ids]), past_key_values=cache, use_cache=True)
    return [(layer.keys, layer.values) for layer in cache.layers]


def logits_of(model, ids: list[int], cache=()) -> torch.Tensor:
    """Logits after each of ``ids``, which follow the cached ones."""
    logits = model(input_ids=torch.tensor([ids]), past_key_values=DynamicCache(cache) if cache else None).logits[0]
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def reward_of(logits: torch.Tensor, future: list[int], temperature: float) -> torch.Tensor:
    """How much the next-token distribution is about the future text (Eq. 5)."""
    return torch.log_softmax(logits / temperature, -1)[future].mean()


def ascend(keys, values, key_gradient, value_gradient, settings: PlanningSettings):
    """One layer's keys and values, one normalised step up."""
    norm = torch.sqrt((key_gradient**2).sum() + (value_gradient**2).sum())
    step = settings.plan_step / (norm**settings.plan_norm_exponent + 1e-15)
    return keys + step * key_gradient, values + step * value_gradient


def plan(model, ids: list[int], future: list[int], settings: PlanningSettings) -> tuple[torch.Tensor, list[float]]:
    """Logits after ``ids`` from a cache moved towards ``future``, and the rewards before, between and after."""
    cache, rewards = cache_of(model, ids[:-1]), []
    for _ in range(settings.plan_iterations):
        cache = [[tensor.detach().requires_grad_() for tensor in layer] for layer in cache]
        reward = reward_of(logits_of(model, ids[-1:], cache)[0], future, settings.plan_temperature)
        gradients = torch.autograd.grad(reward, [tensor for layer in cache for tensor in layer])
        cache = [ascend(*cache[i], *gradients[2 * i : 2 * i + 2], settings) for i in range(len(cache))]
        rewards.append(reward.item())
    logits = logits_of(model, ids[-1:], cache)[0]
    return logits, [*rewards, reward_of(logits, future, settings.plan_temperature).item()]


def next_scores(model, ids: list[int], future: list[int], settings: PlanningSettings):
    """Scores of the token after ``ids``, planned if there is a future, and the rewards on the way."""
    plain = logits_of(model, ids)[-1]
    if settings.planner == "none" or not future:
        return plain, []
    perturbed, rewards = plan(model, ids, future, settings)
    planned = torch.log_softmax(perturbed / settings.plan_temperature, -1)
    return settings.plan_fusion * planned + (1 - settings.plan_fusion) * torch.log_softmax(plain, -1), rewards


def perplexity(model, prompt: list[int], written: list[int]) -> float:
    """Of ``written``, given what is before it; the prompt's own tokens do not count."""
    ids = prompt + written
    log_probabilities = torch.log_softmax(logits_of(model, ids), -1)
    total = sum(log_probabilities[i - 1, ids[i]].item() for i in range(len(prompt), len(ids)))
    return math.exp(-total / len(written))


def judge(perplexities: list[float], complete: list[bool]) -> int:
    """The length of the best prefix of those that end with a whole character; the shortest of several."""
    lengths = [i + 1 for i in range(len(perplexities)) if complete[i]]
    return min(lengths, key=lambda length: perplexities[length - 1])


def infill(
    context: str, template: Template, model, tokenizer, planning: PlanningSettings, infilling: InfillingSettings
) -> Infilled:
    """Generate, judge, revise (Algorithm 2): fill the blanks from left to right."""
    context_ids = cut_context(context, template.reference, window(model), tokenizer, infilling)
    pieces = tokenise(template, tokenizer, after_context=bool(context_ids))
    prompt = make_prompt(context_ids, pieces, tokenizer)
    pieces = fit(pieces, len(prompt), window(model), infilling.sigma)
    written, infills, blanks = [], [], []
    for index, piece in enumerate(pieces):
        if not piece.blank:
            written = written + piece.ids
            continue
        blocks = [later.ids for later in pieces[index + 1 :] if not later.blank]  # a text block follows a blank
        next_block = blocks[0] if blocks else []
        future = sorted({token for ids in blocks for token in ids})
        for whole in (False, True):  # again with tokens of whole characters if no prefix ends with one
            blank = Blank()
            for i in range(len(piece.ids) + infilling.sigma):
                scores, rewards = next_scores(model, prompt + written + blank.generated, future, planning)
                opening = None if i else piece.text
                scores = bar(scores, tokenizer, template.reference, opening, whole=whole)
                blank.generated.append(best(scores))
                blank.rewards.append(rewards)
            prefixes = [blank.generated[: i + 1] for i in range(len(blank.generated))]
            complete = [is_whole(decode(tokenizer, prefix)) for prefix in prefixes]
            if any(complete):
                break
        blank.perplexities = [perplexity(model, prompt, written + prefix + next_block) for prefix in prefixes]
        blank.length = judge(blank.perplexities, complete)
        written = written + blank.generated[: blank.length]
        infills.append(decode(tokenizer, blank.generated[: blank.length]))
        blanks.append(blank)
    return Infilled(template.fill(infills).strip(), infills, blanks, prompt)


def infill_masked(context: str, template: Template, model, tokenizer, infilling: InfillingSettings) -> Infilled:
    """The naive variant: one mask per masked token, all predicted at once."""
    end = window(model) - 1  # one position is the closing token's
    context_ids = cut_context(context, template.reference, end, tokenizer, infilling)
    pieces = tokenise(template, tokenizer, after_context=bool(context_ids))
    prompt = [tokenizer.cls_token_id, *context_ids]
    pieces = fit(pieces, len(prompt), end, extra=0)
    mask = tokenizer.mask_token_id
    ids = [mask if piece.blank else token for piece in pieces for token in piece.ids]
    logits = logits_of(model, [*prompt, *ids, tokenizer.sep_token_id])
    infills, blanks, position = [], [], len(prompt)
    for piece in pieces:
        if piece.blank:
            openings = [piece.text] + [None] * (len(piece.ids) - 1)
            for whole in (False, True):
                scores = [
                    bar(logits[position + i], tokenizer, template.reference, opening, whole=whole)
                    for i, opening in enumerate(openings)
                ]
                generated = [best(token_scores) for token_scores in scores]
                if is_whole(decode(tokenizer, generated)):
                    break
            blanks.append(Blank(generated, length=len(generated)))
            infills.append(decode(tokenizer, blanks[-1].generated))
        position += len(piece.ids)
    return Infilled(template.fill(infills).strip(), infills, blanks, prompt)


def augment(context: str, template: Template, settings: Settings) -> Infilled:
    """The augmented reference of a template, with the models (objects) and the infiller of the settings."""
    context = context if settings.use_context else ""
    if settings.infilling.infiller == "masked":
        return infill_masked(context, template, *settings.models.masked_language_model, settings.infilling)
    return infill(context, template, *settings.models.language_model, settings.planning, settings.infilling)


@functools.cache
def cosine(encoder, first: str, second: str) -> float:
    a, b = (encoder.encode([text], convert_to_tensor=True)[0].double() for text in (first, second))
    return ((a @ b) / (a.norm() * b.norm())).item()


def weighted(similarities: list[float], q: float) -> float:
    """The mean with weights a, a*q, a*q**2, ..."""
    powers = [q**i for i in range(len(similarities))]
    return sum(power * value for power, value in zip(powers, similarities, strict=True)) / sum(powers)


def halfway_to_the_nearest(similarities: list[float]) -> float:
    """Half from the human reference, half from whichever text is nearest, itself included."""
    nearest = similarities[0]
    for value in similarities[1:]:
        if value > nearest:
            nearest = value
    return 0.5 * similarities[0] + 0.5 * nearest


def reference_score(encoder, candidate: str, references: list[str], settings: SimilaritySettings) -> float:
    """A candidate's similarity with the human reference (the first) and its augmentations."""
    if not candidate.strip():
        return 0.0
    similarities = [cosine(encoder, candidate.strip(), reference) for reference in references]
    if settings.augmentation_aggregation == "weighted":
        return weighted(similarities, settings.q)
    return halfway_to_the_nearest(similarities)


def oracle_templates(rows, settings: Settings, analyser) -> list[list[tuple[str, list[Template]]]]:
    """Per row and reference the prepared reference and its templates, by ``mars_score.augment.masking``."""
    from mars_score.augment.masking.analysis import prepare_reference
    from mars_score.augment.masking.idf import Idf
    from mars_score.augment.masking.templates import make_templates

    strip = settings.masking.strip_urls_hashtags
    prepared = [[prepare_reference(text, strip_urls_hashtags=strip) for text in row[1]] for row in rows]
    corpus = settings.masking.idf_corpus or [text for texts in prepared for text in texts]
    idf = Idf.count(dict(zip(corpus, analyser.words(corpus), strict=True)))
    templates = []
    for (_, _, context), texts in zip(rows, prepared, strict=True):
        [words] = analyser.words([context if settings.use_context else ""])
        made = [make_templates(analysis, words, idf, settings.masking) for analysis in analyser.analyse(texts)]
        templates.append([(text, [t for _, t in pairs]) for text, pairs in zip(texts, made, strict=True)])
    return templates


def oracle_scores(rows, templates: list[list[tuple[str, list[Template]]]], settings: Settings) -> list[float]:
    """Scores of rows ``(candidate, references, context)``, with the templates of ``oracle_templates``."""
    scores = []
    for (candidate, _, context), of_references in zip(rows, templates, strict=True):
        of_row = []
        for reference, of_ratios in of_references:
            texts = [reference, *(augment(context, template, settings).text for template in of_ratios)]
            of_row.append(reference_score(settings.models.encoder, candidate, texts, settings.similarity))
        take_best = settings.similarity.reference_aggregation == "max"
        scores.append(max(of_row) if take_best else sum(of_row) / len(of_row))
    return scores
