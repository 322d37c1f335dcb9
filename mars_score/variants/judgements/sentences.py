"""Which sentences of a candidate are judged: those that state something."""

from __future__ import annotations

from mars_score.text import plain_words, sentences
from mars_score.variants.judgements.statements import plain, statement


def judged_sentences(candidate: str) -> list[str]:
    """Return the sentences of a candidate that state something; one word beside them ("Thanks!") does not."""
    parts = [part for line in candidate.splitlines() for part in sentences(plain(line))]
    words = [len(plain_words(statement(part))) for part in parts]
    return [part for part, count in zip(parts, words, strict=True) if count and count >= min(2, max(words))]
