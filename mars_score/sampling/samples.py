"""Contexts -> samples that passed the gates, each set drawn once and saved in the store."""

from __future__ import annotations

import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.cache import digest
from mars_score.data.overlap import copied_share
from mars_score.data.words import split_words
from mars_score.lookup import Done, Results, from_json, to_json
from mars_score.models.fingerprints import Current
from mars_score.models.loading import shared_model
from mars_score.models.served import ServedModel, is_served, served_model
from mars_score.progress import Runtime
from mars_score.sampling.prompts import make_prompt, prompts_of, task_of
from mars_score.settings import Settings
from mars_score.settings.language import ENGLISH, language_code
from mars_score.settings.options import UNSAMPLED_TASKS
from mars_score.settings.stages import SamplingSettings

if TYPE_CHECKING:
    from mars_score.models.causal_lm import CausalLanguageModel

_METHOD = 2  # part of the store's keys; raised when the same settings come to give other samples
ATTEMPTS = 3  # how often missing samples are drawn, the first time included
TOKEN_LIMITS = (16, 32, 64, 128)  # few different ones, so that rows of one context share their samples
UNKNOWN_LIMIT = 64  # tokens of a sample where no references tell their length
SERVED_ROOM = 2  # times the tokens of a sample, as other models may take more for the same words
TOKENS_PER_WORD = 2.0  # of the references: 1.35 tokens a word, and room for longer samples
COPIED = 0.9  # share of words in runs that the context has, too
REPEATED = 0.5  # share of trigrams that repeat earlier ones
_SENTENCE_END = re.compile(  # of Chinese and Japanese also within a line
    r"[.!?\u0964\u061f\u06d4][\"'\u2019\u201d)\]]*(?=\s|$)|[\u3002\uff01\uff1f][\"'\u2019\u201d\u300d\u300f)\]\uff09]*"
)
_QUOTES = {'"': '"', "\u201c": "\u201d", "'": "'", "\u300c": "\u300d"}
_SAME_SCRIPT = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}  # Japanese is written in all three
_REFUSAL = re.compile(
    r"\b(as an? (ai|artificial|language model)|i'?m (sorry|unable)[^.]*\b(can'?t|cannot|unable|assist)|"
    r"i (can'?t|cannot) (assist|help|provide|fulfill)|i am (a|an) (ai|language model))",
    re.IGNORECASE,
)


def tidy(text: str, *, ended: bool) -> str:
    """The first line of a sample without outer whitespace and quotes, and without an unfinished sentence."""
    text = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if not ended:
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        if ends and ends[-1] >= 0.4 * len(text):
            text = text[: ends[-1]]
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text.count(text[0]) <= 2:
        text = text[1:-1].strip()
    return text


def fault_of(text: str, context: str, others: Iterable[str]) -> str | None:
    """Why a sample is dropped, in a word or two; None: it is not."""
    words = split_words(text.lower())
    if not any(character.isalnum() for character in text):
        return "empty"
    if "\ufffd" in text:
        return "broken character"
    if " ".join(words) in {" ".join(split_words(other.lower())) for other in others}:
        return "duplicate"
    if _REFUSAL.search(text):
        return "refusal"
    trigrams = list(zip(words, words[1:], words[2:], strict=False))
    if len(trigrams) >= 6 and 1 - len(set(trigrams)) / len(trigrams) > REPEATED:
        return "repetition"
    if copied_share(text, context) > COPIED:
        return "copy of the context"
    if context and _script(text) != _script(context):
        return "other script"
    return None


def _script(text: str) -> str:
    """The script of most letters, by the first word of their Unicode names; "" without a letter."""
    names = (unicodedata.name(character, "").partition(" ")[0] for character in text if character.isalpha())
    counts = Counter(_SAME_SCRIPT.get(name, name) for name in names)
    return counts.most_common(1)[0][0] if counts else ""


class Request(NamedTuple):
    """What samples depend on besides the model and the settings."""

    context: str  # without outer whitespace, blank for none
    token_limit: int  # tokens of a sample at most
    task: str  # see :func:`mars_score.sampling.prompts.prompts_of`


class Samples(NamedTuple):
    """The samples of a context."""

    texts: tuple[str, ...]  # those that passed the gates, at most ``sample_count`` of the settings, all different
    context_cut: bool = False  # whether they were drawn given a part of the context only


def make_request(context: str, references: Sequence[str], settings: SamplingSettings) -> Request:
    """The request of a row: samples are about as long as its references, if it has any (their median length)."""
    limit = UNKNOWN_LIMIT
    if references:
        words = statistics.median(len(split_words(reference)) for reference in references)
        limit = next((limit for limit in TOKEN_LIMITS if TOKENS_PER_WORD * words <= limit), TOKEN_LIMITS[-1])
    return Request(context, limit, settings.task or task_of(context, references, limit))


def draw_samples(model: CausalLanguageModel | ServedModel, request: Request, settings: Settings) -> Samples:
    """Draw until there are enough samples; one that fails a gate is drawn again, ``ATTEMPTS`` times in all."""
    write, context_cut = _writer(model, request, settings)
    texts: list[str] = []
    dropped: Counter[str] = Counter()
    for _ in range(ATTEMPTS):
        first = len(texts) + dropped.total()
        missing = range(first, first + settings.sampling.sample_count - len(texts))
        if missing:
            keep_good(write(missing), request.context, texts, dropped)
    return Samples(tuple(texts), context_cut)


def keep_good(written: Iterable[tuple[str, bool]], context: str, texts: list[str], dropped: Counter[str]) -> None:
    """Add what passes the gates to ``texts`` and count the faults of the rest; beside a text whether it ended."""
    for text, ended in written:
        sample = tidy(text, ended=ended)
        fault = fault_of(sample, context, texts)
        if fault is None:
            texts.append(sample)
        else:
            dropped[fault] += 1


def _writer(
    model: CausalLanguageModel | ServedModel, request: Request, settings: Settings
) -> tuple[Callable[[range], list[tuple[str, bool]]], bool]:
    """What writes texts, given their numbers, and whether it reads a part of the context only."""
    sampling = settings.sampling
    if isinstance(model, ServedModel):
        messages, plain = prompts_of(request.context, request.task, settings.language)
        options = sampling_options(request, sampling)

        def ask(numbers: range) -> list[tuple[str, bool]]:
            seed = sampling.sample_seed + numbers.start
            return model.write(messages, plain, {**options, "n": len(numbers), "seed": seed})

        return ask, False

    from mars_score.sampling.drawing import draw_texts

    limit = min(request.token_limit, model.window // 2)
    room = model.window - limit
    with model.exclusive():  # a call changes settings of the tokenizer
        prompt, cut = make_prompt(model.codec, request.context, request.task, room, settings.language)

    def draw(numbers: range) -> list[tuple[str, bool]]:
        keys = [digest(sampling.sample_seed, request.context, number) for number in numbers]
        return draw_texts(model, prompt, keys, limit, sampling)

    return draw, cut


def sampling_options(request: Request, settings: SamplingSettings) -> dict[str, Any]:
    """How a served model is to sample, in the words of OpenAI's interface."""
    return {
        "max_tokens": SERVED_ROOM * request.token_limit,
        "temperature": settings.sample_temperature,
        "top_p": settings.sample_top_p,
        "n": settings.sample_count,
        "seed": settings.sample_seed,
    }


class ContextSampler:
    """Draws samples given contexts, or finds them in the store; the language model is loaded only for new ones."""

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self._settings, self._store = settings, runtime.store
        spec = settings.models.language_model
        self._served = is_served(spec)
        load = partial(shared_model, "language_model", settings.models, runtime, in_torch=True)
        make = partial(served_model, spec) if self._served else load
        method = [value for name, value in asdict(settings.sampling).items() if name != "task"]
        language = language_code(settings.language)
        if language != ENGLISH:
            method.append(language)
        self._results: Results[Request, Samples] = Current(spec, make).results(
            "samples",
            ("samples", _METHOD, method, "served" if self._served else settings.models.dtype),
            partial(_draw_missing, settings),
            parts=lambda request: request,
            encode=lambda samples: to_json(samples._asdict()),
            decode=_decode,
        )

    def draw(
        self, requests: Sequence[Request], progress: Callable[[int, int], None] | None = None
    ) -> dict[Request, Samples]:
        """The samples of each different request; none without a context or for tasks that small models fail at."""
        unsampled = () if self._served else UNSAMPLED_TASKS
        drawn = self._settings.sampling.sample_count
        wanted = [request for request in requests if drawn and request.context and request.task not in unsampled]
        return dict.fromkeys(requests, Samples(())) | self._results.read(self._store, wanted, progress)


def _draw_missing(
    settings: Settings,
    model: CausalLanguageModel | ServedModel,
    missing: list[Request],
    done: Done[Request, Samples],
) -> None:
    if isinstance(model, ServedModel):
        model.each(lambda request: draw_samples(model, request, settings), missing, done)
    else:
        for request in missing:
            done(request, draw_samples(model, request, settings))


def _decode(encoded: bytes) -> Samples:
    stored = from_json(encoded)
    return Samples(tuple(stored["texts"]), stored["context_cut"])
