"""Infilling in its plain form (Algorithm 2): one template, one blank and one token at a time.

This is the readable statement of the method: the engine of ``mars_score.infilling`` must choose the same
tokens, and its perplexities must be within 1e-9 of these in float64. What was read stays in transformers' own
cache, so this is also a fair opponent in time. It shares no code with the engine, and takes byte-level tokenizers
only.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from mars_score.metrics.template import Template
from mars_score.models.running import exclusive, ordinary_mode
from mars_score.settings.stages import InfillingSettings, PlanningSettings

States = list[Tensor]  # keys and values of the first layer, of the second, ...

LINE_BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
EPSILON = 1e-15


@dataclass
class Tokens:
    """A piece of a template as the language model sees it."""

    text: str  # with the joining space if it comes first after a context
    ids: list[int]
    blank: bool


@dataclass
class Blank:
    """How one blank was filled.

    Attributes:
        generated: all b + sigma greedy tokens.
        perplexities: of the first 1, 2, ... of them, with what is written and the text block that follows.
        length: how many of them were chosen.
        rewards: of each token, before the first gradient step and after each one.
    """

    generated: list[int] = field(default_factory=list)
    perplexities: list[float] = field(default_factory=list)
    length: int = 0
    rewards: list[list[float]] = field(default_factory=list)


@dataclass
class Infilled:
    """A template's augmented reference and how it came about."""

    text: str
    infills: list[str]
    blanks: list[Blank]
    prompt: list[int]


def encode(tokenizer: Any, text: str) -> list[int]:
    """Token ids without special tokens, also where the text names one."""
    return list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """The text of token ids as it stands."""
    return str(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def cut_context(context: str, reference: str, end: int, tokenizer: Any, settings: InfillingSettings) -> list[int]:
    """The context's first tokens: below position ``end`` room is left for twice the reference and 64 tokens."""
    context = context.strip()
    reference_ids = encode(tokenizer, f" {reference}" if context else reference)
    limit = max(0, end - (2 * len(reference_ids) + 64))
    if settings.max_context_tokens is not None:
        limit = min(limit, settings.max_context_tokens)
    return encode(tokenizer, context)[:limit]


def tokenise(template: Template, tokenizer: Any, *, after_context: bool) -> list[Tokens]:
    """Each piece by itself; after a context the first one owns the joining space."""
    texts = [piece.text for piece in template.pieces]
    if after_context:
        texts[0] = " " + texts[0]
    pieces = zip(texts, template.pieces, strict=True)
    return [Tokens(text, encode(tokenizer, text), piece.blank) for text, piece in pieces]


def make_prompt(context_ids: list[int], pieces: Sequence[Tokens], tokenizer: Any) -> list[int]:
    """Begin-of-text where there is no context or the tokenizer puts it, then the context."""
    begin = tokenizer.bos_token_id
    adds_begin = tokenizer("")["input_ids"][:1] == [begin]
    prompt = [begin, *context_ids] if adds_begin or not context_ids else context_ids
    first_block = [] if pieces[0].blank else pieces[0].ids
    if len(prompt) + len(first_block) < 2:  # else the first blank's cache would be empty
        prompt = [begin, *prompt]
    return prompt


def fit(pieces: Sequence[Tokens], position: int, end: int, extra: int) -> list[Tokens]:
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


def is_whole(text: str) -> bool:
    """Whether a text has no bytes that are a part of a character only."""
    return "\ufffd" not in text


def allowed_tokens(tokenizer: Any, vocabulary: int, reference: str, masked: str | None, *, whole: bool) -> Tensor:
    """Which tokens may be written, (vocabulary,).

    Args:
        tokenizer: the language model's.
        vocabulary: of the model, which may be larger than the tokenizer's.
        reference: without a line break in it, none may be written.
        masked: the masked text if the token opens its blank: both begin a word or both do not.
        whole: whether the token must be whole characters by itself.
    """
    opening = None if masked is None else masked[0].isspace()
    return _allowed(tokenizer, vocabulary, LINE_BREAKS.isdisjoint(reference), opening, whole)


@functools.cache
def _allowed(tokenizer: Any, vocabulary: int, one_line: bool, opening: bool | None, whole: bool) -> Tensor:
    added = {token for token, entry in tokenizer.added_tokens_decoder.items() if entry.special}
    special = added | set(tokenizer.all_special_ids)
    allowed = torch.zeros(vocabulary, dtype=torch.bool)
    for token in range(min(vocabulary, len(tokenizer))):
        text = decode(tokenizer, [token])
        fits = opening is None or (text[:1].isspace() == opening and not (opening and text.isspace()))
        breaks = one_line and not LINE_BREAKS.isdisjoint(text)
        allowed[token] = token not in special and fits and not breaks and (is_whole(text) or not whole)
    return allowed


def best_prefix(perplexities: Sequence[float], complete: Sequence[bool]) -> int:
    """The length of the best prefix of those that end with a whole character; the shortest of equals."""
    lengths = [length for length, is_complete in enumerate(complete, 1) if is_complete]
    return min(lengths, key=lambda length: perplexities[length - 1])


def reward_of(logits: Tensor, future: Sequence[int], temperature: float) -> Tensor:
    """How much the next-token distribution is about the future text (Eq. 5)."""
    return torch.log_softmax(logits / temperature, -1)[list(future)].mean()


def ascend(states: States, gradients: Sequence[Tensor], settings: PlanningSettings) -> States:
    """All keys and values one normalised step up (Eq. 6); the norm is of a layer's keys and values together."""
    moved = []
    for layer in range(0, len(states), 2):
        norm = torch.hypot(gradients[layer].norm(), gradients[layer + 1].norm())
        step = settings.plan_step / (norm**settings.plan_norm_exponent + EPSILON)
        moved += [states[place].detach() + step * gradients[place] for place in (layer, layer + 1)]
    return moved


class SequentialInfiller:
    """Fills the blanks of templates from left to right.

    Args:
        model: any ``...ForCausalLM``, in float32 or float64.
        tokenizer: its tokenizer, byte-level.
        planning: the planner's settings.
        infilling: sigma and the limit of contexts.
    """

    def __init__(
        self, model: Any, tokenizer: Any, planning: PlanningSettings, infilling: InfillingSettings
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.planning, self.infilling = planning, infilling

    def infill(self, context: str, template: Template) -> Infilled:
        """Generate, judge, revise (Algorithm 2)."""
        with ordinary_mode(), exclusive(self.model):
            return self._infill(context, template)

    def _infill(self, context: str, template: Template) -> Infilled:
        tokenizer, window = self.tokenizer, self.model.config.max_position_embeddings
        context_ids = cut_context(context, template.reference, window, tokenizer, self.infilling)
        pieces = tokenise(template, tokenizer, after_context=bool(context_ids))
        prompt = make_prompt(context_ids, pieces, tokenizer)
        pieces = fit(pieces, len(prompt), window, self.infilling.sigma)
        lead = [] if not pieces or pieces[0].blank else pieces[0].ids
        *read, pending = [*prompt, *lead]  # the last written token is not in the cache
        logits, past = self.feed(read, [], keep=max(1, len(lead)))
        surprise, count = float(_surprisal(logits, lead).sum()) if lead else 0.0, len(lead)
        blanks: list[Blank] = []
        for index, piece in enumerate(pieces):
            if not piece.blank:
                continue
            blocks = [later.ids for later in pieces[index + 1 :] if not later.blank]
            block = blocks[0] if blocks else []  # a text block follows a blank
            future = sorted({token for ids in blocks for token in ids})
            blank, surprises = self._draft(piece, template.reference, future, pending, past)
            totals, caches = [], []
            for length in range(1, len(blank.generated) + 1):
                written = [*blank.generated[:length], *block]
                if not block:  # open-ended: judged on what is written and the prefix
                    totals.append(surprise + sum(surprises[:length]))
                else:
                    logits, cache = self.feed([pending, *written[:-1]], past, keep=len(written))
                    totals.append(surprise + float(_surprisal(logits, written).sum()))
                    caches.append(cache)
                blank.perplexities.append(math.exp(totals[-1] / (count + len(written))))
            blank.length = best_prefix(blank.perplexities, self._complete(blank.generated))
            blanks.append(blank)
            if block:
                past, pending, surprise = caches[blank.length - 1], block[-1], totals[blank.length - 1]
                count += blank.length + len(block)
        infills = [decode(tokenizer, blank.generated[: blank.length]) for blank in blanks]
        return Infilled(template.fill(infills).strip(), infills, blanks, prompt)

    def _complete(self, ids: Sequence[int]) -> list[bool]:
        """Whether the first 1, 2, ... tokens end with a whole character."""
        return [is_whole(decode(self.tokenizer, ids[: length + 1])) for length in range(len(ids))]

    def _draft(
        self, piece: Tokens, reference: str, future: Sequence[int], pending: int, past: States
    ) -> tuple[Blank, list[float]]:
        """The b + sigma greedy tokens for a blank, and their surprisal."""
        for whole in (False, True):  # again with tokens of whole characters if no prefix ends with one
            blank, surprises, cache = Blank(), list[float](), past
            for _ in range(len(piece.ids) + self.infilling.sigma):
                token = blank.generated[-1] if blank.generated else pending
                plain, scores, cache, rewards = self.next_scores(token, cache, future)
                masked = None if blank.generated else piece.text
                allowed = allowed_tokens(self.tokenizer, len(scores), reference, masked, whole=whole)
                scores = scores.masked_fill(~allowed.to(scores.device), -math.inf)
                blank.generated.append(int(scores.argmax()))
                blank.rewards.append(rewards)
                surprises.append(float(_surprisal(plain[None], blank.generated[-1:])))
            if any(self._complete(blank.generated)):
                break
        return blank, surprises

    def next_scores(
        self, token: int, past: States, future: Sequence[int]
    ) -> tuple[Tensor, Tensor, States, list[float]]:
        """Plain logits after ``token``, scores of the next one, the plain cache, and the rewards on the way.

        With a future the scores come from a cache that is moved towards it (Eq. 3-6).
        """
        settings = self.planning
        if settings.planner == "none" or not future:
            logits, cache = self.feed([token], past)
            return logits[0], logits[0], cache, []
        rewards, moved = [], past
        for _ in range(settings.plan_iterations):
            leaves = [state.detach().requires_grad_() for state in moved]
            with torch.enable_grad():
                logits, cache = self.feed([token], leaves)
                reward = reward_of(logits[0], future, settings.plan_temperature)
                gradients = torch.autograd.grad(reward, leaves)
            if moved is past:
                plain, plain_cache = logits[0].detach(), [state.detach() for state in cache]
            moved = ascend(leaves, gradients, settings)
            rewards.append(reward.item())
        logits, _ = self.feed([token], moved)
        planned = torch.log_softmax(logits[0] / settings.plan_temperature, -1)
        rewards.append(planned[list(future)].mean().item())
        scores = settings.plan_fusion * planned + (1 - settings.plan_fusion) * torch.log_softmax(plain, -1)
        return plain, scores, plain_cache, rewards

    def feed(self, tokens: Sequence[int], past: States, keep: int = 1) -> tuple[Tensor, States]:
        """Feed tokens after a cache: the logits of the last ``keep`` of them, and the longer cache."""
        cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)) or None)
        ids = torch.tensor([list(tokens)], device=self.model.device)
        logits = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=keep).logits[0]
        return logits, [state for layer in cache.layers for state in (layer.keys, layer.values)]


def _surprisal(logits: Tensor, tokens: Sequence[int]) -> Tensor:
    """-log p of each token under the logits before it, in nats."""
    targets = torch.tensor(list(tokens), device=logits.device)[:, None]
    return -torch.log_softmax(logits, -1).gather(1, targets)[:, 0].double()
