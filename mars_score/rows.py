"""The values that pass between the parts of MARS: rows, judgements, terms and scores."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, NamedTuple, Self

from mars_score.errors import Notice
from mars_score.text import PASSAGE_BREAK

# What a context is, and what a candidate is to do with it, where that changes a score: "text" is the default, and
# the candidate of a "summary" is to follow from its context.
TASKS = ("text", "summary", "dialogue", "data")
# What callers give, one entry per row: a text or several; a text, turns, messages, passages or a record.
Texts = Iterable[str | Iterable[str | None] | None]
Contexts = Iterable[str | Iterable[Any] | Mapping[str, Any] | None]
Tasks = str | Iterable[str | None]  # or one for all rows
UNLIKELY = -10.0  # nats per token at which fluency is 0: about a uniform guess among 22,000 tokens


class _Prompted:
    """What has a context and perhaps a question."""

    __slots__ = ()
    context: str
    question: str

    @property
    def prompt(self) -> str:
        """Return the question and the context, as the language model reads them."""
        return PASSAGE_BREAK.join(filter(None, (self.question, self.context)))


@dataclass(frozen=True, slots=True)
class Example(_Prompted):
    """What candidates are written for and compared with; all texts are checked and without outer whitespace.

    Attributes:
        references: by people; empty where candidates are scored by their context alone.
        context: text, or the turns of a dialogue as lines, or passages joined by
            :data:`mars_score.text.PASSAGE_BREAK`; "" for none.
        samples: texts that others than the candidate's system wrote for the context.
        task: one of :data:`TASKS`.
        question: that passages were retrieved for. It is no evidence: only the language model reads it.
    """

    references: tuple[str, ...] = ()
    context: str = ""
    samples: tuple[str, ...] = ()
    task: str = "text"
    question: str = ""

    def with_candidate(self, candidate: str) -> "Row":
        """Return the row that scores a candidate, a checked text."""
        return Row(candidate, **{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True, slots=True)
class Row(_Prompted):
    """A candidate and its example: what a score depends on besides the settings.

    Attributes:
        candidate: text to score; "" for a blank one.
        references: as of :class:`Example`, like the others.
        context: text.
        samples: texts.
        task: one of :data:`TASKS`.
        question: text.
    """

    candidate: str
    references: tuple[str, ...] = ()
    context: str = ""
    samples: tuple[str, ...] = ()
    task: str = "text"
    question: str = ""

    @classmethod
    def from_values(cls, values: Iterable[object]) -> "Row":
        """Make a row of its values in order, whose tuples JSON has made lists."""
        named: dict[str, Any] = dict(zip((field.name for field in fields(cls)), values, strict=True))
        for name in ("references", "samples"):
            named[name] = tuple(named[name])
        return cls(**named)


class LogProbability(NamedTuple):
    """Mean log probabilities of a text's tokens, in nats; at least those of a uniform guess."""

    given_context: float
    alone: float  # after begin-of-text
    truncated: bool = False  # the end of the context or of the text was left out

    @property
    def pmi(self) -> float:
        """Return what the context adds: pointwise mutual information per token."""
        return self.given_context - self.alone


class Unchecked(StrEnum):
    """Why no contradiction can be told of a row."""

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
    """What an NLI model says of a hypothesis.

    Attributes:
        entailment: probability that the premise entails it.
        contradiction: probability that the premise contradicts it; the rest is neutral.
        unsupported: largest probability of a word that the premise does not support it; None for a model that does
            not read words.
        words: the words whose probability is at least a half, without the marks around them.
    """

    entailment: float
    contradiction: float
    unsupported: float | None = None
    words: tuple[str, ...] = ()

    @property
    def support(self) -> float:
        """Return the probability that the premise entails the hypothesis and supports each of its words."""
        return self.entailment * (1 - (self.unsupported or 0.0))

    @property
    def refutation(self) -> float:
        """Return the probability that the premise contradicts the hypothesis, in a word where words are read."""
        return self.contradiction * (1.0 if self.unsupported is None else self.unsupported)

    def at_best(self, other: "Entailment") -> "Entailment":
        """Return what both readings of a hypothesis allow to say against it."""
        surest = min(self, other, key=lambda one: (one.unsupported or 0.0, len(one.words)))
        return surest._replace(
            entailment=max(self.entailment, other.entailment),
            contradiction=min(self.contradiction, other.contradiction),
        )

    @classmethod
    def from_json(
        cls, entailment: float, contradiction: float, unsupported: float | None, words: Iterable[str]
    ) -> Self:
        """Make one of its values, whose tuple JSON has made a list."""
        return cls(entailment, contradiction, unsupported, tuple(words))


class Judgement(NamedTuple):
    """What an NLI model says of a sentence of a candidate.

    Attributes:
        sentence: of the candidate.
        premise: what it is judged by: the context or a passage of it for a summary, else a reference or a passage.
        entailment: the probabilities that the premise entails and that it contradicts the sentence.
        by_reference: what a reference says of it, for a summary that says nearly all of one.
    """

    sentence: str
    premise: str
    entailment: Entailment
    by_reference: "Judgement | None" = None


@dataclass(frozen=True)
class Verdict:
    """A sentence that is contradicted, or unsupported, by a judgement that is reliable enough to be told.

    Attributes:
        sentence: of the candidate.
        probability: that the premise contradicts it, or of an unsupported one that the premise supports it, by the
            NLI model; None if no model was asked.
        premise: the reference, or the passage of the context, that decides it.
        source: what the premise is of: "context" or "reference".
        words: of the sentence that the premise contradicts or does not support; empty if they are not known.
        number: of the sentence among those of the candidate, from 1.
        absent: numbers and names among ``words`` that no text has by which the candidate is judged.
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
        """Make a verdict from what :meth:`to_dict` gave."""
        return cls(**{**stored, "words": tuple(stored["words"]), "absent": tuple(stored["absent"])})


@dataclass(frozen=True)
class Term:
    """One term of a score, which is the sum of ``value * weight``.

    Attributes:
        name: one of :data:`mars_score.metrics.plus.TERMS`; a learned head has names of its own.
        value: a similarity in [-1, 1]; for ``"likelihood"`` nats per token.
        weight: factor of the value.
    """

    name: str
    value: float
    weight: float


def weighted_sum(terms: Iterable[Term]) -> float:
    """Return the score that terms make."""
    return sum(term.weight * term.value for term in terms)


@dataclass(frozen=True)
class Infill:
    """An augmented reference: a reference whose blanks a language model filled."""

    mask_ratio: float  # share of the words that may be masked
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
    """A candidate against one human reference.

    Attributes:
        augmented: the reference with its infills.
        similarities: with each of ``augmented.texts``, in [-1, 1]: token recall, or the cosine in ``paper``.
        score: their weighted mean (Eq. 7); the similarity itself without infills.
    """

    augmented: AugmentedReference
    similarities: tuple[float, ...]
    score: float

    @property
    def compared(self) -> tuple[tuple[str, float, str], ...]:
        """Return (kind, similarity, text) of each text that the candidate was compared with, to show."""
        kinds = ["reference", *(f"masked {infill.mask_ratio:.0%}" for infill in self.augmented.infills)]
        return tuple(zip(kinds, self.similarities, self.augmented.texts, strict=True))


@dataclass(frozen=True)
class SampleScore:
    """A candidate against one sample: token recall of the sample."""

    text: str
    similarity: float


class Aspects(NamedTuple):
    """Sides of a candidate that people rate apart, each in [0, 1]; None where the score does not compute it.

    Attributes:
        reference: how much of the reference it says: the value of the term ``"references"``.
        context: how near it is to the context: the value of the term ``"context"``.
        fluency: how likely it is without the context: 1 at a mean log probability of 0 nats per token, 0 at -10.
        repetition: share of its words that are repeated; the only aspect of which less is better.
        supported: mean probability that the context entails its sentences, 0 for a contradicted one; None unless
            it is a summary, and where the NLI model cannot tell.
    """

    reference: float | None = None
    context: float | None = None
    fluency: float | None = None
    repetition: float | None = None
    supported: float | None = None

    @classmethod
    def of(cls, terms: Iterable[Term], log_p: LogProbability | None = None) -> "Aspects":
        """Take the aspects of a candidate from the terms of its score; no model runs for them alone.

        Args:
            terms: of its score.
            log_p: its log probability; None: not computed.
        """
        values = {term.name: term.value for term in terms}
        return cls(
            reference=_in_unit_interval(values.get("references")),
            context=_in_unit_interval(values.get("context")),
            fluency=_in_unit_interval(None if log_p is None else 1 - log_p.alone / UNLIKELY),
            repetition=_in_unit_interval(values.get("repetition")),
            supported=_in_unit_interval(values.get("support")),
        )

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.2f}" for name, value in self._asdict().items() if value is not None)


def _in_unit_interval(value: float | None) -> float | None:
    return None if value is None else min(1.0, max(0.0, value))


@dataclass(frozen=True)
class RowScore:
    """A candidate's score and its parts; a blank candidate scores 0.0 and has neither references nor terms.

    Attributes:
        score: the weighted sum of the terms.
        terms: in the order of the formula.
        references: the candidate against each reference.
        samples: the candidate against each sample.
        notices: what was special about the row.
        aspects: single sides of the candidate; none of a blank one.
        contradicted: verdicts on its contradicted sentences, where that is reliable.
        unsupported: verdicts on the sentences of a summary that its context does not say, where that is reliable;
            some of them are contradicted as well.
        unchecked: why no contradiction could be told; "" if it could.
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
        """Return whether a contradiction could be told."""
        return not self.unchecked

    @property
    def findings(self) -> list[tuple[str, Verdict]]:
        """Return (label, verdict) pairs: contradicted sentences first, then others that are unsupported."""
        contradicted = {verdict.number for verdict in self.contradicted}
        others = [one for one in self.unsupported if one.number not in contradicted]
        return [*(("contradicted", one) for one in self.contradicted), *(("unsupported", one) for one in others)]

    @property
    def reference_texts(self) -> tuple[str, ...]:
        """Return the references and their infills, without repetitions."""
        return tuple(dict.fromkeys(text for reference in self.references for text in reference.augmented.texts))

    def found(self) -> dict[str, Any]:
        """Return what is found in the sentences of the candidate, as plain data."""
        return {
            "contradicted": [verdict.to_dict() for verdict in self.contradicted],
            "supported": self.aspects.supported,
            "unsupported": [verdict.to_dict() for verdict in self.unsupported],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the notices, which are those of the result, as plain data."""
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
        """Make the score of a row from what :meth:`to_dict` gave, and its notices."""
        references = tuple(
            ReferenceScore(
                AugmentedReference(
                    reference["reference"], tuple(Infill(**infill) for infill in reference["augmentations"])
                ),
                tuple(reference["similarities"]),
                reference["score"],
            )
            for reference in stored["references"]
        )
        return cls(
            stored["score"],
            tuple(Term(**term) for term in stored["terms"]),
            references,
            tuple(SampleScore(**sample) for sample in stored["samples"]),
            frozenset(notices),
            Aspects(**stored["aspects"]),
            contradicted=tuple(map(Verdict.from_dict, stored["contradicted"])),
            unsupported=tuple(map(Verdict.from_dict, stored["unsupported"])),
            unchecked=stored["unchecked"],
        )
