"""Marks of the wrong words of a hypothesis: a private character before each, which is taken off for a model.

So the marks stay with their words when the surface of a hypothesis changes. A word is wrong that the twin of the
hypothesis, which the premise entails, does not have in its place.
"""

import re
from difflib import SequenceMatcher

from research.entailment.pairs import NOT_CONTRADICTION, Group

MARK = "\ue000"
MOST_WORDS = 5  # A hypothesis with more words that differ is another wording, and no single word is to blame.
LEAST_SHARED = 0.6  # of the words of a hypothesis and its twin
_WORD = re.compile(r"\S+")
_OUTER = "\"'()[]{}.,;:!?*_`\u201c\u201d\u2018\u2019"


def with_marks(group: Group) -> Group:
    """Mark the wrong words of hypotheses by their twins, or else by the entailed hypothesis that is nearest.

    The pairs of a contradicted hypothesis and the entailed one that marked it become twins.
    """
    entailed = [number for number, label in enumerate(group.labels) if label == "entailment"]
    twin_of = {other: one for one, other in group.twins}
    texts, twins = list(group.hypotheses), dict(twin_of)
    for number, label in enumerate(group.labels):
        if label in ("entailment", NOT_CONTRADICTION):
            continue
        candidates = [twin_of[number]] if number in twin_of else entailed
        found = [(marked(texts[number], group.hypotheses[one]), one) for one in candidates]
        best = min(((text.count(MARK), text, one) for text, one in found if MARK in text), default=None)
        if best:
            texts[number] = best[1]
            if label == "contradiction":
                twins.setdefault(number, best[2])
    return group._replace(hypotheses=tuple(texts), twins=tuple((one, other) for other, one in twins.items()))


def marked(hypothesis: str, twin: str) -> str:
    """Return a hypothesis with marks before the words that its twin does not have; as it is if they are many."""
    words, others = hypothesis.split(), twin.split()
    matcher = SequenceMatcher(None, list(map(_core, words)), list(map(_core, others)), autojunk=False)
    wrong = {
        number
        for kind, first, last, _, _ in matcher.get_opcodes()
        if kind != "equal"
        for number in range(first, last)
    }
    if len(wrong) > MOST_WORDS or matcher.ratio() < LEAST_SHARED:
        return hypothesis
    return " ".join(MARK + word if number in wrong else word for number, word in enumerate(words))


def unmarked(text: str) -> str:
    """Return a text without marks."""
    return text.replace(MARK, "")


def wrong_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the marked words in the text without marks."""
    spans, taken = [], 0
    for match in _WORD.finditer(text):
        marks = match[0].count(MARK)
        if marks:
            spans.append((match.start() - taken, match.end() - taken - marks))
            taken += marks
    return spans


def _core(word: str) -> str:
    return word.strip(_OUTER).lower() or word
