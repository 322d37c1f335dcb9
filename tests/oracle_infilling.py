"""Infilling as in Algorithm 2: one template, one blank and one token at a time.

This is the readable form of the method. :mod:`mars_score.infilling.batched` shares no code with it, and must
choose the same tokens, with perplexities within 1e-9 of these in float64. Keys and values stay in the cache of
transformers, so this is also a fair baseline of speed. It takes byte-level tokenizers only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import DynamicCache

from mars_score.infilling.jobs import FilledTemplate, TemplateInContext
from mars_score.metrics.paper import PaperConfig, Template
from mars_score.models.running import exclusive, ordinary_mode
from mars_score.text import as_prose

States = list[Tensor]  # keys and values of the first layer, of the second, ...

LINE_BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
CONTEXT_RESERVE = 64  # Tokens of the window that the context leaves free, besides twice the reference.
EPSILON = 1e-15  # Added to the gradient's norm, as in PPLM.


class EncodedPiece(NamedTuple):
    """A blank or a text block of a template, as the language model sees it."""

    text: str  # with the joining space if it comes first after a context
    ids: list[int]
    is_blank: bool

    @property
    def length(self) -> int:
        """The number of its tokens; at least one for a blank, even if the tokenizer drops the masked text."""
        return max(len(self.ids), int(self.is_blank))


class Written(NamedTuple):
    """The text so far: the prompt and a part of the reference."""

    past: States  # keys and values of all tokens but the last
    last: int  # the last token
    log_probability: float  # log probability of the reference's tokens, in nats
    length: int  # number of the reference's tokens


@dataclass
class PlainBlank:
    """A filled blank.

    Attributes:
        generated: all b + sigma tokens.
        perplexities: for the first 1, 2, ... of them, with the text so far and the text block that follows.
        length: number of chosen tokens.
        rewards: for each token, before the first gradient step and after each step.
    """

    generated: list[int] = field(default_factory=list)
    perplexities: list[float] = field(default_factory=list)
    length: int = 0
    rewards: list[list[float]] = field(default_factory=list)


@dataclass
class PlainResult:
    """The augmented reference of a template, with its parts."""

    filled: FilledTemplate
    infills: list[str]
    blanks: list[PlainBlank]
    prompt: list[int]


class PlainInfiller:
    """Fills the blanks of templates from left to right.

    Args:
        model: any ``...ForCausalLM``, in float32 or float64.
        tokenizer: its tokenizer, byte-level.
        config: sigma, the limit of contexts, and the planner.
    """

    def __init__(self, model: Any, tokenizer: Any, config: PaperConfig) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, config

    def infill(self, pairs: Iterable[TemplateInContext]) -> Iterator[tuple[TemplateInContext, FilledTemplate]]:
        """Yield each different (context, template) with its augmented reference."""
        for pair in dict.fromkeys(pairs):
            yield pair, self.fill(*pair).filled

    def fill(self, context: str, template: Template) -> PlainResult:
        """Fill the blanks of a template: generate, judge, revise (Algorithm 2)."""
        with ordinary_mode(), exclusive(self.model):
            window = self.model.config.max_position_embeddings
            context_ids, context_cut = cut_context(
                context, template.reference, window, self.tokenizer, self.config
            )
            pieces = encode_pieces(template, self.tokenizer, after_context=bool(context_ids))
            prompt = make_prompt(context_ids, pieces, self.tokenizer)
            pieces = fit(pieces, window - len(prompt), self.config.sigma)
            written = self._begin(prompt, [] if not pieces or pieces[0].is_blank else pieces[0].ids)
            blanks: list[PlainBlank] = []
            for index, piece in enumerate(pieces):
                if piece.is_blank:
                    blocks = [later.ids for later in pieces[index + 1 :] if not later.is_blank]
                    blank, written = self._fill_blank(piece, blocks, template.reference, written)
                    blanks.append(blank)
        infills = [decode(self.tokenizer, blank.generated[: blank.length]) for blank in blanks]
        reference_cut = len(blanks) < len(template.blanks)
        filled = FilledTemplate(template.fill(infills).strip(), context_cut, reference_cut)
        return PlainResult(filled, infills, blanks, prompt)

    def _begin(self, prompt: list[int], first_block: list[int]) -> Written:
        """Write the prompt and the text block before the first blank."""
        if not first_block:
            return Written(self.run(prompt[:-1], [])[1], prompt[-1], 0.0, 0)
        logits, past = self.run([*prompt, *first_block[:-1]], [], keep=len(first_block))
        return Written(past, first_block[-1], log_probability(logits, first_block), len(first_block))

    def _fill_blank(
        self, piece: EncodedPiece, blocks: Sequence[list[int]], reference: str, written: Written
    ) -> tuple[PlainBlank, Written]:
        """Generate tokens, judge each prefix of them, and write the best one and the text block that follows."""
        block = blocks[0] if blocks else []
        future = sorted({token for ids in blocks for token in ids})
        blank = self._generate(piece, future, reference, written)
        # The text with the first 1, 2, ... tokens as infill.
        outcomes = [
            self._append(written, [*blank.generated[:length], *block])
            for length in range(1, len(blank.generated) + 1)
        ]
        blank.perplexities = [math.exp(-outcome.log_probability / outcome.length) for outcome in outcomes]
        blank.length = best_prefix(blank.perplexities, self._whole_prefixes(blank.generated))
        return blank, outcomes[blank.length - 1]

    def _append(self, written: Written, ids: Sequence[int]) -> Written:
        logits, past = self.run([written.last, *ids[:-1]], written.past, keep=len(ids))
        total = written.log_probability + log_probability(logits, ids)
        return Written(past, ids[-1], total, written.length + len(ids))

    def _generate(
        self, piece: EncodedPiece, future: Sequence[int], reference: str, written: Written
    ) -> PlainBlank:
        """Generate b + sigma tokens greedily; if no prefix ends with a whole character, with whole ones only."""
        for whole in (False, True):
            blank, token, past = PlainBlank(), written.last, written.past
            for _ in range(piece.length + self.config.sigma):
                scores, past, rewards = self.next_scores(token, past, future)
                masked = None if blank.generated else piece.text
                allowed = allowed_tokens(self.tokenizer, len(scores), reference, masked, whole=whole)
                token = int(scores.masked_fill(~allowed.to(scores.device), -math.inf).argmax())
                blank.generated.append(token)
                blank.rewards.append(rewards)
            if any(self._whole_prefixes(blank.generated)):
                break
        return blank

    def _whole_prefixes(self, ids: Sequence[int]) -> list[bool]:
        """Tell whether the first 1, 2, ... tokens end with a whole character."""
        return [is_whole(decode(self.tokenizer, ids[: length + 1])) for length in range(len(ids))]

    def next_scores(self, token: int, past: States, future: Sequence[int]) -> tuple[Tensor, States, list[float]]:
        """Score the tokens that may follow ``token``.

        If there is a future, the scores come from a cache that is moved towards it (Eq. 3-6).

        Returns:
            Scores, (vocabulary,); the longer cache, not moved; and the rewards of the planner's steps.
        """
        config = self.config
        if config.planner == "none" or not future:
            logits, longer = self.run([token], past)
            return logits[0], longer, []
        rewards, moved = [], past
        for _ in range(config.plan_iterations):
            leaves = [state.detach().requires_grad_() for state in moved]
            with torch.enable_grad():
                logits, cache = self.run([token], leaves)
                reward = reward_of(logits[0], future, config.plan_temperature)
                gradients = torch.autograd.grad(reward, leaves)
            if moved is past:
                plain, longer = logits[0].detach(), [state.detach() for state in cache]
            moved = ascend(leaves, gradients, config)
            rewards.append(reward.item())
        logits, _ = self.run([token], moved)
        planned = torch.log_softmax(logits[0] / config.plan_temperature, -1)
        rewards.append(planned[list(future)].mean().item())
        scores = config.plan_fusion * planned + (1 - config.plan_fusion) * torch.log_softmax(plain, -1)
        return scores, longer, rewards

    def run(self, tokens: Sequence[int], past: States, keep: int = 1) -> tuple[Tensor, States]:
        """Run the model over tokens after a cache.

        Returns:
            Logits of the last ``keep`` tokens, (keep, vocabulary), and the longer cache.
        """
        cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)) or None)
        ids = torch.tensor([list(tokens)], device=self.model.device)
        logits = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=keep).logits[0]
        return logits, [state for layer in cache.layers for state in (layer.keys, layer.values)]


# Planning


def reward_of(logits: Tensor, future: Sequence[int], temperature: float) -> Tensor:
    """Return the mean log probability of the future's tokens as the next token (Eq. 5)."""
    return torch.log_softmax(logits / temperature, -1)[list(future)].mean()


def ascend(states: States, gradients: Sequence[Tensor], config: PaperConfig) -> States:
    """Move keys and values one normalised step up (Eq. 6); the norm is that of all layers together."""
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    step = config.plan_step / (norm**config.plan_norm_exponent + EPSILON)
    return [state.detach() + step * gradient for state, gradient in zip(states, gradients, strict=True)]


# Judging


def log_probability(logits: Tensor, tokens: Sequence[int]) -> float:
    """Return the log probability of tokens, in nats, under the logits before each of them."""
    targets = torch.tensor(list(tokens), device=logits.device)[:, None]
    return float(torch.log_softmax(logits, -1).gather(1, targets).double().sum())


def best_prefix(perplexities: Sequence[float], whole: Sequence[bool]) -> int:
    """Return the length of the best prefix that ends with a whole character; the shortest of equals."""
    lengths = [length for length, allowed in enumerate(whole, 1) if allowed]
    return min(lengths, key=lambda length: perplexities[length - 1])


# Tokens


def encode(tokenizer: Any, text: str) -> list[int]:
    """Return token ids without special tokens, even if the text names one."""
    return list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return the text of token ids, not cleaned up."""
    return str(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def is_whole(text: str) -> bool:
    """Tell whether a text has no incomplete characters."""
    return "\ufffd" not in text


def cut_context(
    context: str, reference: str, window: int, tokenizer: Any, config: PaperConfig
) -> tuple[list[int], bool]:
    """Return the context's first tokens, and whether some are left out.

    Room is left in the window for twice the reference and :data:`CONTEXT_RESERVE` tokens.
    """
    context_ids = encode(tokenizer, as_prose(context.strip()))
    reference_ids = encode(tokenizer, f" {reference}" if context_ids else reference)
    limit = max(0, window - (2 * len(reference_ids) + CONTEXT_RESERVE))
    if config.max_context_tokens is not None:
        limit = min(limit, config.max_context_tokens)
    return context_ids[:limit], limit < len(context_ids)


def encode_pieces(template: Template, tokenizer: Any, *, after_context: bool) -> list[EncodedPiece]:
    """Encode each piece by itself; after a context the first one begins with the joining space."""
    texts = [text for text, _ in template.pieces]
    if after_context:
        texts[0] = " " + texts[0]
    pieces = zip(texts, template.pieces, strict=True)
    return [EncodedPiece(text, encode(tokenizer, text), is_blank) for text, (_, is_blank) in pieces]


def make_prompt(context_ids: list[int], pieces: Sequence[EncodedPiece], tokenizer: Any) -> list[int]:
    """Put begin-of-text before the context if it is blank or the tokenizer does so."""
    begin = tokenizer.bos_token_id
    adds_begin = tokenizer("")["input_ids"][:1] == [begin]
    prompt = [begin, *context_ids] if adds_begin or not context_ids else context_ids
    first_block = [] if pieces[0].is_blank else pieces[0].ids
    if len(prompt) + len(first_block) < 2:  # Else the first blank's cache would be empty.
        prompt = [begin, *prompt]
    return prompt


def fit(pieces: Sequence[EncodedPiece], room: int, extra: int) -> list[EncodedPiece]:
    """Keep the pieces that fit into ``room`` tokens; a blank needs ``extra`` tokens more."""
    fitting = []
    for piece in pieces:
        size = piece.length + extra * piece.is_blank
        if size > room:
            if not piece.is_blank:
                fitting.append(piece._replace(ids=piece.ids[:room]))
            break
        fitting.append(piece)
        room -= size
    return fitting


def allowed_tokens(tokenizer: Any, vocabulary: int, reference: str, masked: str | None, *, whole: bool) -> Tensor:
    """Tell which tokens may be written, (vocabulary,).

    Args:
        tokenizer: the language model's.
        vocabulary: size of the model's vocabulary, which may be larger than the tokenizer's.
        reference: its text; tokens with line breaks are allowed only if it has one.
        masked: the masked text if the token opens its blank; both or neither must begin a word.
        whole: whether the token must decode to whole characters by itself.
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


def template_of(reference: str, shown: str) -> Template:
    """The template that is shown with "____" for its blanks."""
    first, *others = shown.split("____")
    blanks: list[tuple[int, int]] = []
    end = len(first)
    for text in others:
        after = reference.index(text, end + 1) if text else len(reference)
        blanks.append((len(reference[:end].rstrip()), after))
        end = after + len(text)
    return Template(reference, tuple(blanks))


def infilled(models: tuple[Any, Any], config: Any, context: str, reference: str, shown: str) -> str:
    """What a model and its tokenizer write into the template of a reference that is shown with "____"."""
    template = template_of(reference, shown)
    assert str(template) == shown
    return PlainInfiller(*models, config).fill(context, template).filled.text if template.blanks else reference
