"""What the language model is asked to write, given a context: a prompt in token ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from mars_score.data.contexts import BETWEEN_PASSAGES, as_prose
from mars_score.data.words import split_words
from mars_score.settings.language import ENGLISH, language_code, language_name

if TYPE_CHECKING:
    from mars_score.models.engine.tokens import TextCodec

CONTEXT = "{context}"
PROMPT_TOKENS = 512  # of the context at most: reading more changes few samples and costs the most
# Lines are the turns of a dialogue if they have so many words on average at most; in a text of more than
# ``LONG_DIALOGUE`` words they may be longer, if one asks a question in so many words: news hardly does.
TURN_WORDS, LONG_DIALOGUE = 25, 100
LONG_TURN_WORDS, WORDS_PER_QUESTION = 40, 400
TURNS = 8  # the last ones that are read
LONG = 2  # words of a context per token of a sample, above which it is summarized
FEW_WORDS = 5  # a context of fewer words that is no sentence says too little to be continued
DATA_MARKS = "=_|[]{}<>\t"  # of tables and meaning representations
DATA_CHARACTERS = 40  # per mark, in a context that is no prose
CLOSING = " \n\t\"'\u2019\u201d\u300d\u300f)]\uff09"  # may stand after a question mark
SPEAKER = re.compile(r"([^\W\d_]+)[\w .'-]{0,30}(?::\s|\uff1a)")  # at the beginning of a turn
QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e")
FULL_STOPS = (".", "!", "\u2026", "\u3002", "\uff01", "\uff0e", "\uff61", "\u06d4", "\u0964")
ROLE_TOKENS = 8  # of a chat template, for each turn


# For each task the user's message to a chat model, and the text that a base model continues.
INSTRUCTIONS = {
    "summary": (f"{CONTEXT}\n\nSummarize the text above in one or two sentences.", f"{CONTEXT}\n\nTL;DR:"),
    "answer": (f"{CONTEXT}\n\nAnswer the question briefly.", f"{CONTEXT}\nAnswer:"),
    "simplification": (f"Rewrite this in simpler words: {CONTEXT}", f"{CONTEXT}\nIn simpler words:"),
}
# Likewise for chat models alone; base models continue the context, or are not asked.
TO_CHAT = {
    **{task: to_chat for task, (to_chat, _) in INSTRUCTIONS.items()},
    "story": f"{CONTEXT}\n\nContinue the text above with one or two sentences. Write nothing else.",
    "data": f"{CONTEXT}\n\nSay in one sentence what the record above says.",
}
SYSTEM = "You write short, plain answers."
SYSTEM_OF_DIALOGUE = "You are chatting with a friend. Reply to the last message in one short sentence."


def task_of(context: str, references: Sequence[str], token_limit: int) -> str:
    """The task that the form of a context suggests.

    Several short lines are a transcript to be summarized where the references speak about its speakers, else a
    dialogue if they are few or ask questions; a question wants an answer, a few words that are no sentence or a
    record of fields and values are data, a text of many more words than a sample has tokens is to be summarized,
    and any other text, passages included, is continued.
    """
    words = len(split_words(context))
    prose = "summary" if words > LONG * token_limit else "story"
    if BETWEEN_PASSAGES in context:
        return prose
    lines = _turns(context)
    is_long = words > LONG_DIALOGUE
    if len(lines) > 1 and words <= (LONG_TURN_WORDS if is_long else TURN_WORDS) * len(lines):
        if _about_speakers(lines, references):
            return "summary"
        if not is_long or words <= WORDS_PER_QUESTION * sum(_ends_with(line, QUESTION_MARKS) for line in lines):
            return "dialogue"
    if _ends_with(context, QUESTION_MARKS):
        return "answer"
    marks = sum(character in DATA_MARKS for character in context)
    few = words < FEW_WORDS and not _ends_with(context, FULL_STOPS)
    if few or marks * DATA_CHARACTERS > len(context):
        return "data"
    return prose


@dataclass(frozen=True)
class Prompt:
    """What the language model continues."""

    tokens: tuple[int, ...]  # token ids, at least one
    cut: bool  # whether a part of the context was left out


def make_prompt(codec: TextCodec, context: str, task: str, room: int, language: str = ENGLISH) -> Prompt:
    """The prompt for a context, of which at most ``PROMPT_TOKENS`` tokens are read; see ``TASKS`` of the settings.

    A model with a chat template gets messages: a dialogue's turns with alternating roles, of which the last is the
    user's, or an instruction. Other models get plain text. Either continues a story as it stands.
    """
    context = as_prose(context.strip())
    ids = codec.encode(context)
    budget = max(0, min(PROMPT_TOKENS, room - len(_prompt_ids(codec, "", task, language)) - ROLE_TOKENS * TURNS))
    cut = len(ids) > budget
    if cut:
        read = ids[:budget] if task == "summary" else ids[len(ids) - budget :]
        context = codec.decode(read).strip("\ufffd\n ")
    tokens = _prompt_ids(codec, context, task, language)
    return Prompt(tuple(tokens[-room:]), cut or len(tokens) > room)


def chat_messages(context: str, task: str, language: str = ENGLISH) -> list[dict[str, str]]:
    """What a chat model is asked: messages with ``"role"`` and ``"content"``, the first of the system."""
    context = as_prose(context.strip())
    if task == "dialogue":
        return _messages(_in_language(SYSTEM_OF_DIALOGUE, language), _last_turns(context))
    system = _in_language(SYSTEM, language) if task in TO_CHAT else SYSTEM
    return _messages(system, [TO_CHAT.get(task, task).replace(CONTEXT, context)])


def _messages(system: str, turns: Sequence[str]) -> list[dict[str, str]]:
    """Turns with alternating roles, the last of the user, behind a message of the system."""
    roles = [("assistant", "user")[(len(turns) - index) % 2] for index in range(len(turns))]
    texts = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=True)]
    return [{"role": "system", "content": system}, *texts]


def _prompt_ids(codec: TextCodec, context: str, task: str, language: str) -> list[int]:
    if task != "story" and getattr(codec.tokenizer, "chat_template", None):
        if task == "dialogue":
            return _chat_ids(codec.tokenizer, _in_language(SYSTEM_OF_DIALOGUE, language), _last_turns(context))
        system = _in_language(SYSTEM, language) if task in INSTRUCTIONS else SYSTEM
        to_chat, _ = INSTRUCTIONS.get(task, (task, task))
        return _chat_ids(codec.tokenizer, system, [to_chat.replace(CONTEXT, context)])
    ids = codec.encode(plain_prompt(context, task))
    return [codec.begin, *ids] if codec.adds_begin or not ids else ids


def plain_prompt(context: str, task: str) -> str:
    """What a model that was not trained to chat continues."""
    context = as_prose(context)
    if task == "story":
        return context
    if task == "dialogue":
        turns = _last_turns(context)
        return "\n".join(f"{'BA'[(len(turns) - index) % 2]}: {turn}" for index, turn in enumerate(turns)) + "\nB:"
    _, plain = INSTRUCTIONS.get(task, (task, task))
    return plain.replace(CONTEXT, context)


def _in_language(system: str, language: str) -> str:
    return system if language_code(language) == ENGLISH else f"{system} Write in {language_name(language)}."


def _turns(context: str) -> list[str]:
    return [line.strip() for line in context.splitlines() if line.strip()]


def _last_turns(context: str) -> list[str]:
    """The turns of a dialogue that are read; a blank one where there is none."""
    return _turns(context)[-TURNS:] or [""]


def _ends_with(text: str, marks: tuple[str, ...]) -> bool:
    return text.rstrip(CLOSING).endswith(marks)


def _about_speakers(turns: Sequence[str], references: Sequence[str]) -> bool:
    """Whether each turn begins with "Name:", and a reference, no turn itself, with a name or has two of them."""
    speakers = [SPEAKER.match(turn) for turn in turns]
    names = {speaker[1].casefold() for speaker in speakers if speaker}
    if not all(speakers):
        return False
    for reference in references:
        words = re.findall(r"[^\W\d_]+", reference.casefold())
        begins = any(_mentioned(name, words[:1]) for name in names)
        if not SPEAKER.match(reference) and (begins or sum(_mentioned(name, words) for name in names) > 1):
            return True
    return False


def _mentioned(name: str, words: Sequence[str]) -> bool:
    """Whether a name is one of the words, or a part of one where names are not separated by spaces."""
    return name in words or (len(split_words(name)) > 1 and any(name in word for word in words))


def _chat_ids(tokenizer: Any, system: str, turns: Sequence[str]) -> list[int]:
    """The chat template's token ids up to the beginning of the reply; the last turn is the user's."""
    for token in tokenizer.all_special_tokens:  # the chat template would take them for its own marks
        turns = [turn.replace(token, " ") for turn in turns]
    _, *messages = in_full = _messages(system, turns)
    try:
        text = _rendered(tokenizer, in_full)
    except TemplateError:  # a template without system messages, whose first message is the user's
        first = 0 if messages[0]["role"] == "user" else 1
        messages[first]["content"] = f"{system}\n\n{messages[first]['content']}"
        text = _rendered(tokenizer, messages[first:])
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _rendered(tokenizer: Any, messages: Sequence[dict[str, str]]) -> str:
    """As text; models that can reason aloud first are told not to."""
    asked = {"add_generation_prompt": True, "enable_thinking": False}
    return str(tokenizer.apply_chat_template(messages, tokenize=False, **asked))
