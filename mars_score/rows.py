"""The data classes that pass between the parts of MARS: rows, NLI outputs, verdicts, terms and scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from statistics import fmean
from typing import Any, Literal, NamedTuple, Self

from mars_score.errors import Notice
from mars_score.text import PASSAGE_BREAK

# The kind of a context. "text" is the default. The candidate of a "summary" should follow from its context.
TASKS = ("text", "summary", "dialogue", "data")
# Columns as callers pass them, with one entry per row.
Texts = Iterable[str | Iterable[str | None] | None]
Contexts = Iterable[str | Iterable[object] | Mapping[str, object] | None]
Tasks = str | Iterable[str | None]  # A single string holds for all rows.
Aggregation = Literal["max", "mean"]
UNLIKELY = -10.0  # nats per token where fluency is 0, about a uniform guess among 22,000 tokens


class _Prompted:
    """Gives rows and examples their prompt."""

    __slots__ = ()
    context: str
    question: str

    @property
    def prompt(self) -> str:
        """Return the question and the context, as the language model reads them."""
        return PASSAGE_BREAK.join(filter(None, (self.question, self.context)))


@dataclass(frozen=True, slots=True)
class Example(_Prompted):
    """Holds the checked texts that candidates are scored by, without outer white space.

    Attributes:
        references: texts by people. Without any, candidates are scored by the context alone.
        context: a text, the turns of a dialogue as lines, or passages joined by
            :data:`mars_score.text.PASSAGE_BREAK`, or "" for none.
        samples: texts that other systems wrote for the context.
        task: one of :data:`TASKS`.
        question: the query of the retrieved passages. Only the language model reads it, as it is no evidence.
    """

    references: tuple[str, ...] = ()
    context: str = ""
    samples: tuple[str, ...] = ()
    task: str = "text"
    question: str = ""

    def with_candidate(self, candidate: str) -> "Row":
        """Return the row of this example and a checked candidate."""
        return Row(candidate, self.references, self.context, self.samples, self.task, self.question)


@dataclass(frozen=True, slots=True)
class Row(_Prompted):
    """Holds a candidate ("" for a blank one) and the texts of its :class:`Example`."""

    candidate: str
    references: tuple[str, ...] = ()
    context: str = ""
    samples: tuple[str, ...] = ()
    task: str = "text"
    question: str = ""

    @classmethod
    def from_values(cls, values: Iterable[Any]) -> "Row":
        """Make a row from its field values in order. JSON stores its tuples as lists."""
        read: list[Any] = [tuple(value) if isinstance(value, list) else value for value in values]
        return cls(*read)


class LogProbability(NamedTuple):
    """Mean log probability of a text's tokens in nats, not below that of a uniform guess."""

    given_context: float
    alone: float  # after the begin-of-text token
    truncated: bool = False  # whether the end of the context or of the text was left out

    @property
    def pmi(self) -> float:
        """Return the pointwise mutual information of context and text, in nats per token."""
        return self.given_context - self.alone


class Unchecked(StrEnum):
    """Reasons why a row was not checked for contradictions."""

    DIALOGUE = "dialogue"
    RECORD = "record"
    BLANK = "blank candidate"
    NO_REFERENCE = "no reference"
    NO_CONTEXT = "no context"
    NOT_ENGLISH = "not English"
    FAR = "far from its references"
    NOT_BY_CONTEXT = "this preset cannot judge summaries by their context"
    NOTHING_STATED = "nothing is stated"
    BY_SETTINGS = "not judged with these settings"
    BY_MODEL = "not judged by this NLI model"


class Entailment(NamedTuple):
    """Output of an NLI model for a premise and a hypothesis.

    Attributes:
        entailment: probability of entailment.
        contradiction: probability of contradiction. The rest is neutral.
        unsupported: probability that the premise does not support a word of the hypothesis, for the word where it
            is largest, or None for a model without labels of words.
        words: words with a probability of at least a half, without the punctuation around them.
    """

    entailment: float
    contradiction: float
    unsupported: float | None = None
    words: tuple[str, ...] = ()

    @property
    def support(self) -> float:
        """Return the probability of entailment, times the probability that each word is supported."""
        return self.entailment * (1 - (self.unsupported or 0.0))

    @property
    def refutation(self) -> float:
        """Return the probability of contradiction, times that of an unsupported word if words have labels."""
        return self.contradiction * (1.0 if self.unsupported is None else self.unsupported)

    def at_best(self, other: "Entailment") -> "Entailment":
        """Combine the outputs for two readings of a hypothesis, each time with the value more in its favour."""
        surest = min(self, other, key=lambda one: (one.unsupported or 0.0, len(one.words)))
        return surest._replace(
            entailment=max(self.entailment, other.entailment),
            contradiction=min(self.contradiction, other.contradiction),
        )

    @classmethod
    def from_json(
        cls, entailment: float, contradiction: float, unsupported: float | None, words: Iterable[str]
    ) -> Self:
        """Make an output from its values. JSON stores its tuple as a list."""
        return cls(entailment, contradiction, unsupported, tuple(words))


class Judgement(NamedTuple):
    """Output of an NLI model for a sentence of a candidate.

    Attributes:
        sentence: the sentence.
        premise: a text or an excerpt of it: of the context for a summary, of a reference for other texts.
        entailment: the probabilities.
        by_reference: the output by a reference, for a summary that holds nearly all of one.
    """

    sentence: str
    premise: str
    entailment: Entailment
    by_reference: "Judgement | None" = None


@dataclass(frozen=True)
class Verdict:
    """A contradicted or unsupported sentence, reported because the decision is reliable enough.

    Attributes:
        sentence: the sentence of the candidate.
        probability: the NLI model's probability of contradiction, or of support for an unsupported sentence. None
            if the decision needed no model.
        premise: the text that decided, from a reference or the context.
        source: where the premise is from, "context" or "reference".
        words: contradicted or unsupported words of the sentence, if they are known.
        number: number of the sentence in the candidate, from 1.
        absent: numbers and names among ``words`` that none of the sources has.
    """

    sentence: str
    probability: float | None
    premise: str
    source: str
    words: tuple[str, ...] = ()
    number: int = 1
    absent: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {**asdict(self), "words": list(self.words), "absent": list(self.absent)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Verdict":
        """Make a verdict from the output of :meth:`to_dict`."""
        return cls(**{**stored, "words": tuple(stored["words"]), "absent": tuple(stored["absent"])})


@dataclass(frozen=True)
class Term:
    """A term of a score. The score is the sum of ``value * weight``.

    Attributes:
        name: a key of :data:`mars_score.metrics.plus.TERMS`, or a name of a learned head.
        value: a similarity in [-1, 1], or nats per token for ``"likelihood"``.
        weight: factor of the value.
    """

    name: str
    value: float
    weight: float


def weighted_sum(terms: Iterable[Term]) -> float:
    """Return the score of some terms."""
    return sum(term.weight * term.value for term in terms)


def aggregate(values: Sequence[float], how: Aggregation) -> float:
    """Return the maximum or the mean over references."""
    return max(values) if how == "max" else fmean(values)


@dataclass(frozen=True)
class Infill:
    """A reference whose masked words a language model replaced."""

    mask_ratio: float  # largest share of the words to mask
    template: str  # the reference with "____" for each blank
    text: str


@dataclass(frozen=True)
class AugmentedReference:
    """A human reference with its infills, by rising mask ratio."""

    reference: str
    infills: tuple[Infill, ...] = ()
    notices: frozenset[Notice] = frozenset()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the reference and its infills."""
        return (self.reference, *(infill.text for infill in self.infills))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {"reference": self.reference, "augmentations": [asdict(infill) for infill in self.infills]}


@dataclass(frozen=True)
class ReferenceScore:
    """Similarity of a candidate with one human reference.

    Attributes:
        augmented: the reference with its infills.
        similarities: one per text of ``augmented.texts``, in [-1, 1]: cosines in ``paper``, else token recall.
        score: their weighted mean (Eq. 7), or the similarity itself without infills.
    """

    augmented: AugmentedReference
    similarities: tuple[float, ...]
    score: float

    @property
    def compared(self) -> tuple[tuple[str, float, str], ...]:
        """Return (kind, similarity, text) of the reference and of each infill."""
        kinds = ["reference", *(f"masked {infill.mask_ratio:.0%}" for infill in self.augmented.infills)]
        return tuple(zip(kinds, self.similarities, self.augmented.texts, strict=True))


@dataclass(frozen=True)
class SampleScore:
    """Similarity of a candidate with one sample."""

    text: str
    similarity: float  # token recall of the sample


class Aspects(NamedTuple):
    """Qualities of a candidate that people rate separately, each in [0, 1], or None where the score has no value.

    Attributes:
        reference: value of the term ``"references"``: how much of the reference the candidate says.
        context: value of the term ``"context"``: how similar the candidate is to the context.
        fluency: 1 at a mean log probability without the context of 0 nats per token, 0 at -10.
        repetition: share of repeated words. This is the only aspect where less is better.
        supported: mean probability that the context entails a sentence of a summary, with 0 for contradicted
            sentences, or None for other tasks, and where the NLI model is not reliable enough.
    """

    reference: float | None = None
    context: float | None = None
    fluency: float | None = None
    repetition: float | None = None
    supported: float | None = None

    @classmethod
    def of(cls, terms: Iterable[Term], log_p: LogProbability | None = None) -> "Aspects":
        """Return the aspects of a candidate, from the terms of its score and its log probability."""
        values = {term.name: term.value for term in terms}
        if log_p is not None:
            values["fluency"] = 1 - log_p.alone / UNLIKELY
        names = ("references", "context", "fluency", "repetition", "support")
        return cls(*(min(1.0, max(0.0, values[name])) if name in values else None for name in names))

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.2f}" for name, value in self._asdict().items() if value is not None)


@dataclass(frozen=True)
class RowScore:
    """A candidate's score and its parts. A blank candidate scores 0.0, without references and terms.

    Attributes:
        score: the weighted sum of the terms.
        terms: terms in the order of the formula.
        references: similarity with each reference.
        samples: similarity with each sample.
        notices: what was special about the row.
        aspects: qualities of the candidate, all None for a blank one.
        contradicted: contradicted sentences.
        unsupported: sentences of a summary that its context does not support. Some are contradicted, too.
        unchecked: why the row was not checked for contradictions, or "" if it was.
    """

    score: float
    terms: tuple[Term, ...] = ()
    references: tuple[ReferenceScore, ...] = ()
    samples: tuple[SampleScore, ...] = ()
    notices: frozenset[Notice] = frozenset()
    aspects: Aspects = field(default_factory=Aspects)
    contradicted: tuple[Verdict, ...] = ()
    unsupported: tuple[Verdict, ...] = ()
    unchecked: str = ""

    @property
    def checked(self) -> bool:
        """Tell whether the row was checked for contradictions."""
        return not self.unchecked

    @property
    def findings(self) -> list[tuple[str, Verdict]]:
        """Return (label, verdict) pairs: contradicted sentences first, then other unsupported ones."""
        contradicted = {verdict.number for verdict in self.contradicted}
        others = [one for one in self.unsupported if one.number not in contradicted]
        return [*(("contradicted", one) for one in self.contradicted), *(("unsupported", one) for one in others)]

    @property
    def reference_texts(self) -> tuple[str, ...]:
        """Return the references and their infills, without repetitions."""
        return tuple(dict.fromkeys(text for reference in self.references for text in reference.augmented.texts))

    def found(self) -> dict[str, Any]:
        """Return the verdicts and the support of the candidate's sentences, ready for JSON."""
        return {
            "contradicted": [verdict.to_dict() for verdict in self.contradicted],
            "supported": self.aspects.supported,
            "unsupported": [verdict.to_dict() for verdict in self.unsupported],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all but the notices, ready for JSON."""
        return {
            "score": self.score,
            "terms": [asdict(term) for term in self.terms],
            "references": [
                {
                    **reference.augmented.to_dict(),
                    "similarities": list(reference.similarities),
                    "score": reference.score,
                }
                for reference in self.references
            ],
            "samples": [asdict(sample) for sample in self.samples],
            "aspects": self.aspects._asdict(),
            **self.found(),
            "unchecked": self.unchecked,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], notices: Iterable[Notice] = ()) -> "RowScore":
        """Make a score from the output of :meth:`to_dict` and its notices."""
        return cls(
            stored["score"],
            tuple(Term(**term) for term in stored["terms"]),
            tuple(
                ReferenceScore(
                    AugmentedReference(
                        one["reference"], tuple(Infill(**infill) for infill in one["augmentations"])
                    ),
                    tuple(one["similarities"]),
                    one["score"],
                )
                for one in stored["references"]
            ),
            tuple(SampleScore(**sample) for sample in stored["samples"]),
            frozenset(notices),
            Aspects(**stored["aspects"]),
            contradicted=tuple(map(Verdict.from_dict, stored["contradicted"])),
            unsupported=tuple(map(Verdict.from_dict, stored["unsupported"])),
            unchecked=stored["unchecked"],
        )
