"""Which sentences of a candidate are judged: those that state something."""

from __future__ import annotations

from mars_score.text import plain_words, sentences
from mars_score.variants.judgements.statements import READ, UNTIL_READ, plain, statement


def judged_sentences(candidate: str) -> list[str]:
    """Return the sentences of a candidate that state something; one word beside them ("Thanks!") does not."""
    parts = [part for line in candidate.splitlines() for part in sentences(_plain(line))]
    words = [len(plain_words(statement(part))) for part in parts]
    return [part for part, count in zip(parts, words, strict=True) if count and count >= min(2, max(words))]


def _plain(line: str) -> str:
    return line if len(line) > READ else plain(line, UNTIL_READ)
