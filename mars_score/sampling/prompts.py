"""What a language model is asked to write, given a context."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from mars_score.data.contexts import BETWEEN_PASSAGES, as_prose
from mars_score.data.words import split_words
from mars_score.settings.language import ENGLISH, language_code, language_name
from mars_score.settings.options import TASKS

if TYPE_CHECKING:
    from mars_score.models.codec import TextCodec

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

# The user's message to a chat model, and the text that a base model continues; a dialogue has turns instead.
PROMPTS = {
    "story": (f"{CONTEXT}\n\nContinue the text above with one or two sentences. Write nothing else.", CONTEXT),
    "summary": (f"{CONTEXT}\n\nSummarize the text above in one or two sentences.", f"{CONTEXT}\n\nTL;DR:"),
    "answer": (f"{CONTEXT}\n\nAnswer the question briefly.", f"{CONTEXT}\nAnswer:"),
    "simplification": (f"Rewrite this in simpler words: {CONTEXT}", f"{CONTEXT}\nIn simpler words:"),
    "data": (f"{CONTEXT}\n\nSay in one sentence what the record above says.", f"{CONTEXT}\nIn words:"),
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


def prompts_of(context: str, task: str, language: str = ENGLISH) -> tuple[list[dict[str, str]], str]:
    """The messages to a chat model, first that of the system, and the text that a base model continues.

    Args:
        context: without outer whitespace.
        task: one of ``TASKS`` of the settings, or a prompt with ``{context}``. The turns of a dialogue have
            alternating roles, and the last one is the user's.
        language: if it is not English, a chat model is told to write in it.
    """
    context = as_prose(context)
    message, plain = (text.replace(CONTEXT, context) for text in PROMPTS.get(task, (task, task)))
    system, turns = SYSTEM, [message]
    if task == "dialogue":
        system, turns = SYSTEM_OF_DIALOGUE, _turns(context)[-TURNS:] or [""]
    roles = [("user", "assistant")[turns_after % 2] for turns_after in reversed(range(len(turns)))]
    if task == "dialogue":
        lines = [f"{'A' if role == 'user' else 'B'}: {turn}" for role, turn in zip(roles, turns, strict=True)]
        plain = "\n".join([*lines, "B:"])
    if task in TASKS and language_code(language) != ENGLISH:
        system = f"{system} Write in {language_name(language)}."
    messages = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=True)]
    return [{"role": "system", "content": system}, *messages], plain


def make_prompt(
    codec: TextCodec, context: str, task: str, room: int, language: str = ENGLISH
) -> tuple[list[int], bool]:
    """Token ids that a model is to continue, at least one, and whether a part of the context is left out.

    At most ``PROMPT_TOKENS`` tokens of the context are read, and the prompt has at most ``room``. A story is
    continued as it stands also by a model that can chat. Arguments as for :func:`prompts_of`.
    """
    chats = task != "story" and getattr(codec.tokenizer, "chat_template", None)

    def prompt_ids(context: str) -> list[int]:
        messages, plain = prompts_of(context, task, language)
        if chats:
            return _chat_ids(codec.tokenizer, messages)
        return codec.prompt(codec.encode(plain))

    context = as_prose(context)
    ids = codec.encode(context)
    budget = max(0, min(PROMPT_TOKENS, room - len(prompt_ids("")) - ROLE_TOKENS * TURNS))
    cut = len(ids) > budget
    if cut:
        read = ids[:budget] if task == "summary" else ids[len(ids) - budget :]
        context = codec.decode(read).strip("\ufffd\n ")
    tokens = prompt_ids(context)
    return tokens[-room:], cut or len(tokens) > room


def _chat_ids(tokenizer: Any, messages: Sequence[dict[str, str]]) -> list[int]:
    """The chat template's token ids up to the beginning of the reply, without reasoning."""
    system, *turns = messages
    for token in tokenizer.all_special_tokens:  # the chat template would take them for its own marks
        turns = [{**turn, "content": turn["content"].replace(token, " ")} for turn in turns]
    options = {"add_generation_prompt": True, "enable_thinking": False, "return_dict": False}
    try:
        ids = tokenizer.apply_chat_template([system, *turns], **options)
    except TemplateError:  # a template without system messages, whose first message is the user's
        first, *others = turns if turns[0]["role"] == "user" else turns[1:]
        first = {**first, "content": f"{system['content']}\n\n{first['content']}"}
        ids = tokenizer.apply_chat_template([first, *others], **options)
    return list(ids)


def _turns(context: str) -> list[str]:
    return [line.strip() for line in context.splitlines() if line.strip()]


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
