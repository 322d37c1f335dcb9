"""Changes of a text's surface that leave what it says: marks, markup, citations, emoji, discourse words, case.

Those of :data:`LEARNED` are put on texts that an NLI model learns from; :data:`MEASURED` has others too, which it
has not seen.
"""

import random
import re
from collections.abc import Callable

Change = Callable[[str, random.Random], str]

_EMOJI = ["😀", "🎉", "✅", "🔥", "👍", "❤️", "📌", "🚀", "😢", "⭐", "💡", "👉", "🙏", "📰", "☀️"]
_LEADS = [
    "Yes,",
    "Yes.",
    "So,",
    "Well,",
    "Sure,",
    "Okay,",
    "Right,",
    "Overall,",
    "Basically,",
    "Essentially,",
    "Actually,",
    "Indeed,",
    "Also,",
    "However,",
    "Moreover,",
    "Notably,",
]
_PHRASES = (
    "In short,",
    "In summary,",
    "In other words,",
    "To sum up,",
    "In fact,",
    "Of course,",
    "According to the text,",
    "According to the article,",
    "Based on the passage,",
    "As far as is known,",
    "It is said that",
    "It turns out that",
    "We learn that",
    "The text says that",
    "As you can see,",
    "Here is the thing:",
    "Summary:",
    "Answer:",
    "Sure! Here is a summary:",
)
_TAILS = ("as the text says", "according to the article", "as stated", "as mentioned above", "it says", "you know")
_CITATIONS = (
    "[1]",
    "[2, 3]",
    "[12]",
    "(Smith 2020)",
    "(Wu et al., 2021)",
    "(see p. 4)",
    "[^3]",
    "¹",
    "(ibid.)",
    "[Source]",
)
_UNKNOWN = ("<unk>", "[UNK]", "</s>", "<pad>", "\ufffd", "<s>", "[SEP]")
_SHORT = (
    ("is not", "isn't"),
    ("are not", "aren't"),
    ("was not", "wasn't"),
    ("were not", "weren't"),
    ("did not", "didn't"),
    ("does not", "doesn't"),
    ("do not", "don't"),
    ("cannot", "can't"),
    ("will not", "won't"),
    ("would not", "wouldn't"),
    ("it is", "it's"),
    ("he is", "he's"),
    ("she is", "she's"),
    ("they are", "they're"),
    ("has not", "hasn't"),
    ("have not", "haven't"),
    ("had not", "hadn't"),
)
_NUMBERS = tuple(
    zip(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
        map(str, range(2, 13)),
        strict=True,
    )
)
_PERCENT = ((" percent", "%"), (" per cent", "%"))


def _end(text: str, mark: str) -> str:
    return text if "?" in text[-3:] else text.rstrip(" .!") + mark  # A question without its mark is none.


def _lowered(text: str) -> str:
    first = text.split(" ", 1)[0]
    return text if first == "I" or first.isupper() else text[:1].lower() + text[1:]


def _exchanged(text: str, pairs: tuple[tuple[str, str], ...], rng: random.Random) -> str:
    both = [*pairs, *((second, first) for first, second in pairs)]
    rng.shuffle(both)
    for before, after in both:
        changed = re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", after, text, count=1)
        if changed != text:
            return changed
    return text


def _within(text: str, mark: str, rng: random.Random) -> str:
    words = text.split(" ")
    return " ".join(words) if len(words) < 3 else _put(words, mark, rng.randrange(1, len(words) - 1))


def _misspelt(text: str, rng: random.Random) -> str:
    """Swap, drop or double a letter of a longer word, as people mistype."""
    words = list(re.finditer(r"[^\W\d_]{4,}", text))
    if not words:
        return text
    word = rng.choice(words)
    place = rng.randrange(word.start(), word.end() - 1)
    pair = text[place : place + 2]
    return text[:place] + rng.choice((pair[::-1], pair[0], pair[0] + pair)) + text[place + 2 :]


def _put(words: list[str], mark: str, place: int) -> str:
    return " ".join([*words[:place], mark, *words[place:]])


def _bold(text: str, rng: random.Random) -> str:
    words, mark = text.split(" "), rng.choice(("**", "*", "_", "`"))
    place = rng.randrange(len(words))
    words[place] = f"{mark}{words[place]}{mark}"
    return " ".join(words)


LEARNED: dict[str, Change] = {
    "exclamation mark": lambda text, rng: _end(text, rng.choice(("!", "!!", "!!!"))),
    "no full stop": lambda text, rng: _end(text, ""),
    "ellipsis": lambda text, rng: _end(text, rng.choice(("...", "…", ";", " ."))),
    "emoji in front": lambda text, rng: f"{rng.choice(_EMOJI)} {text}",
    "emoji behind": lambda text, rng: f"{text} {rng.choice(_EMOJI)}",
    "citation": lambda text, rng: _end(text, f" {rng.choice(_CITATIONS)}."),
    "citation behind": lambda text, rng: f"{text}{rng.choice(_CITATIONS)}",
    "citation within": lambda text, rng: _within(text, rng.choice(_CITATIONS), rng),
    "discourse word": lambda text, rng: f"{rng.choice(_LEADS)} {_lowered(text)}",
    "phrase in front": lambda text, rng: f"{rng.choice(_PHRASES)} {_lowered(text)}",
    "phrase behind": lambda text, rng: _end(text, f", {rng.choice(_TAILS)}."),
    "so in front": lambda text, rng: f"{rng.choice(('So', 'And', 'But', 'Then'))} {_lowered(text)}",
    "tag": lambda text, rng: rng.choice((f"{text}<br>", f"<p>{text}</p>", f"<b>{text}</b>", f"{text}<br/>")),
    "list mark": lambda text, rng: f"{rng.choice(('-', '*', '•', '1.', '2)', 'a)', '>', '#'))} {text}",
    "bold word": _bold,
    "bold": lambda text, rng: f"**{text}**",
    "quotation marks": lambda text, rng: rng.choice((f'"{text}"', f"“{text}”", f"'{text}'", f"«{text}»")),
    "typographic": lambda text, rng: text.replace("'", "\u2019").replace(" - ", " — "),
    "unknown token": lambda text, rng: rng.choice(
        (f"{text} {rng.choice(_UNKNOWN)}", f"{rng.choice(_UNKNOWN)} {text}")
    ),
    "unknown token within": lambda text, rng: _within(text, rng.choice(_UNKNOWN), rng),
    "lower case": lambda text, rng: text.lower(),
    "upper case": lambda text, rng: text.upper(),
    "spaces": lambda text, rng: re.sub(r"([,.;:!?])", r" \1", text).replace(" ", rng.choice((" ", "  "))),
    "no commas": lambda text, rng: text.replace(",", ""),
    "entity": lambda text, rng: text.replace("&", "&amp;").replace("'", "&#39;").replace(" and ", " &amp; ", 1),
    "short forms": lambda text, rng: _exchanged(text, _SHORT, rng),
    "figures": lambda text, rng: _exchanged(text, _NUMBERS, rng),
    "per cent": lambda text, rng: _exchanged(text, _PERCENT, rng),
    "misspelt": _misspelt,
    "address": lambda text, rng: (
        f"{text} {rng.choice(('https://example.com/a', 'www.example.org', '(https://x.net)'))}"
    ),
}
MEASURED: dict[str, Change] = {
    **LEARNED,
    "I think": lambda text, rng: f"I think {_lowered(text)}",
    "heading": lambda text, rng: f"## Result\n{text}",
    "thanks": lambda text, rng: f"{text} Thanks!",
    "hope this helps": lambda text, rng: f"{text} Hope this helps.",
    "emoticon": lambda text, rng: f"{text} :-)",
    "brackets": lambda text, rng: f"({text})",
    "hashtag": lambda text, rng: f"{text} #news",
    "footnote": lambda text, rng: f"{text}*",
    "table cell": lambda text, rng: f"| {text} |",
    "title case": lambda text, rng: text.title(),
    "dash": lambda text, rng: text.replace(", ", " - "),
    "line break": lambda text, rng: text.replace(" ", "\n", 1),
    "doubled word": lambda text, rng: re.sub(r"\bthe\b", "the the", text, count=1),
    "full-width": lambda text, rng: text.replace(",", "\uff0c").replace(".", "\uff0e"),
    "one moment": lambda text, rng: f"Hmm, let me see. {text}",
}


def changed(text: str, rng: random.Random) -> str:
    """Return a text with one of the learned changes."""
    return rng.choice(list(LEARNED.values()))(text, rng)
