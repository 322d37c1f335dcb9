"""Describe the contradicted and unsupported sentences of a candidate, in the same words in every output."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from mars_score.rows import Row, RowScore, Verdict
from mars_score.sentences import sentences
from mars_score.text import MARKS_AROUND, one_line, plain_words

LABELS = ("contradicted", "unsupported", "")  # labels of a row in the order of lists, or "" without findings
_QUOTED = 100  # characters of a quoted premise
_LISTED = 4  # numbers and names in a line; more are only counted
_MOST_WORDS = 0.5  # share of unsupported words above which a whole sentence counts as unsupported
_SAME_SENTENCE = 0.5  # share of equal words at which two sentences are aligned
_WORD = re.compile(r"[^\s*_`]+")
_GAP = r"[\s*_`]{1,20}"  # characters between words, also in Markdown

Span = tuple[int, int]


@dataclass(frozen=True)
class Finding:
    """A contradicted or unsupported sentence of a candidate.

    Attributes:
        label: ``"contradicted"`` or ``"unsupported"``.
        verdict: the verdict on the sentence.
        absent: numbers and names that the sources lack, besides contradicted words.
        sources: phrase for these sources, such as ``"the context"``.
        is_of_several: whether the candidate has other sentences.
    """

    label: str
    verdict: Verdict
    absent: tuple[str, ...] = ()
    sources: str = "the context"
    is_of_several: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """Return the wrong words of the sentence, as far as they are known."""
        return tuple(dict.fromkeys((*self.verdict.words, *self.absent)))

    def in_words(self, length: int | None = _QUOTED) -> str:
        """Say what is wrong, such as ``1970 and Rome are not in the context``.

        Only ``length`` characters of the premise are quoted, or all if it is None.
        """
        verdict, parts = self.verdict, []
        if self.label == "contradicted":
            parts.append(f'contradicts the {verdict.source} "{one_line(verdict.premise, length)}"{self._by()}')
        if self.absent:
            names = _phrases(self.absent, verdict.sentence)
            parts.append(f"{_some(names)} {'is' if len(names) == 1 else 'are'} not in {self.sources}")
        if self.label == "unsupported" and (verdict.probability is not None or not parts):
            parts.append(f"{self.sources} does not support {self._unsaid()}")
        return "; ".join(parts)

    @property
    def reasons(self) -> list[str]:
        """Return a line that says what is wrong, and one with the most similar part of the context."""
        premise = self.verdict.premise if self.label == "unsupported" else ""
        return [self.in_words(None), *([f"nearest: {one_line(premise)}"] if premise else [])]

    def _by(self) -> str:
        """Return the contradicted words with those of the premise, or else the probability, in brackets."""
        contradicted = self.verdict.words if self.label == "contradicted" else ()
        if contradicted:
            phrases = _phrases(contradicted, self.verdict.sentence)
            instead = ""  # of several phrases it would not be clear which word stands for which
            if len(phrases) == 1:
                instead = words_instead(contradicted, self.verdict.sentence, self.verdict.premise)
            return f" ({_some(phrases)} instead of {instead})" if instead else f" ({_some(phrases)})"
        return "" if self.verdict.probability is None else f" ({self.verdict.probability:.2f})"

    def _unsaid(self) -> str:
        """Return the unsupported words in quotation marks, or ``it`` for most words of a sentence."""
        words = [word for word in self.verdict.words if word not in self.absent]
        if not words or len(words) > _MOST_WORDS * len(plain_words(self.verdict.sentence)):
            return f"it{self._by()}"
        return _some([f'"{phrase}"' for phrase in _phrases(words, self.verdict.sentence)])

    def with_number(self, length: int | None = _QUOTED) -> str:
        """Say what is wrong as :meth:`in_words` does, with the number of the sentence if there are several."""
        text = self.in_words(length)
        if not self.is_of_several:
            return text
        return f"sentence {self.verdict.number}{'' if self.label == 'contradicted' else ':'} {text}"


def findings_of(row: Row, score: RowScore) -> tuple[Finding, ...]:
    """Return the findings of a row and its score: contradicted sentences first, then other unsupported ones."""
    pairs = score.findings
    if not pairs:
        return ()
    absent_of = {verdict.number: verdict.absent for verdict in score.unsupported}
    sources = "the context"
    if row.task == "data":
        sources = "the record or its references" if row.references else "the record"
    is_of_several = any(verdict.number > 1 for _, verdict in pairs) or len(sentences(row.candidate)) > 1
    found = []
    for label, verdict in pairs:
        told = verdict.words if label == "contradicted" else ()
        absent = tuple(word for word in absent_of.get(verdict.number, ()) if word not in told)
        found.append(Finding(label, verdict, absent, sources, is_of_several))
    return tuple(found)


def brief_findings(findings: Sequence[Finding], length: int = 110) -> str:
    """Describe the first of one or more findings in a line of ``length`` characters, and count the others."""
    first, *others = findings
    more = f"; and {len(others)} more" if others else ""
    return one_line(first.with_number(length * 2 // 5), length - len(more)) + more


def label_of(score: RowScore) -> str:
    """Return the label of a candidate's first finding, one of :data:`LABELS`."""
    return next((label for label, _ in score.findings), "")


def listed(names: Sequence[str]) -> str:
    """Write a list in words: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def _some(names: Sequence[str]) -> str:
    kept = _LISTED if len(names) > _LISTED + 1 else len(names)
    more = [f"{len(names) - kept} more"] if kept < len(names) else []
    return listed([*names[:kept], *more])


def _phrases(words: Iterable[str], sentence: str) -> list[str]:
    """Return each word once, and join adjacent words of a name."""
    phrases: list[str] = []
    for word in words:
        joined = f"{phrases[-1]} {word}" if phrases else ""
        if joined and joined in sentence and not any(sign.isdigit() for sign in joined):
            phrases[-1] = joined
        else:
            phrases.append(word)
    return list(dict.fromkeys(phrases))


def words_instead(words: Sequence[str], sentence: str, premise: str) -> str:
    """Return the words of a premise that replace some words of a sentence.

    The sentence is aligned with the most similar sentence of the premise. The result is "" if fewer than half of
    their words agree, or nothing replaces the words.
    """
    wrong = {part for word in words for part in plain_words(word)}
    plain, parts = list(map(_plain, sentence.split())), [part.split() for part in sentences(premise)]
    matchers = [SequenceMatcher(None, plain, list(map(_plain, part)), autojunk=False) for part in parts]
    ratios = [matcher.ratio() for matcher in matchers]
    if max(ratios, default=0.0) < _SAME_SENTENCE:
        return ""
    nearest = ratios.index(max(ratios))
    instead = [
        word.strip(MARKS_AROUND)
        for kind, first, last, start, end in matchers[nearest].get_opcodes()
        if kind == "replace" and end - start <= _LISTED and wrong.intersection(" ".join(plain[first:last]).split())
        for word in parts[nearest][start:end]
    ]
    return " ".join(instead)


def _plain(word: str) -> str:
    return " ".join(plain_words(word)) or word


# Positions in the text


def marked_parts(text: str, findings: Iterable[Finding]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text in order, and whether each is wrong.

    A finding marks its wrong words. Without known words it marks the sentence, unless that is the whole text.
    """
    done = 0
    for start, end in sorted(set(_spans(text, findings))):
        if start >= done:
            yield text[done:start], False
            yield text[start:end], True
            done = end
    yield text[done:], False


def _spans(text: str, findings: Iterable[Finding]) -> Iterator[Span]:
    end = 0
    for finding in sorted(findings, key=lambda one: one.verdict.number):
        sentence = _find_sentence(text, finding.verdict.sentence, end)
        if sentence is None:
            continue
        start, end = sentence
        if finding.words:
            yield from _find_words(text, finding.words, start, end)
        elif text[start:end].strip() != text.strip():
            yield start, end


def _find_sentence(text: str, sentence: str, start: int) -> Span | None:
    """Find a sentence in a text that may have other white space or Markdown between the words."""
    found = text.find(sentence, start)
    if found >= 0:
        return found, found + len(sentence)
    words = list(_WORD.finditer(text, start))
    sought = " ".join(_WORD.findall(sentence))
    found = " ".join(word[0] for word in words).find(sought) if sought else -1
    if found < 0:
        return None
    offsets = list(accumulate((len(word[0]) + 1 for word in words), initial=0))

    def place(index: int) -> int:
        number = bisect_right(offsets, index) - 1
        return words[number].start() + index - offsets[number]

    return place(found), place(found + len(sought) - 1) + 1


def _find_words(text: str, words: Iterable[str], start: int, end: int) -> Iterator[Span]:
    for word in filter(str.strip, words):
        before = r"(?<!\w)(?<!\d[.,])" if word[:1].isalnum() else ""
        behind = r"(?!\w)(?![.,]\d)" if word[-1:].isalnum() else ""
        pattern = re.compile(f"{before}{_GAP.join(map(re.escape, _WORD.findall(word)))}{behind}")
        yield from (match.span() for match in pattern.finditer(text, start, end))
