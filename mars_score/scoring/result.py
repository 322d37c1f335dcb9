"""Results of a scorer: frozen; whatever prints, plots or writes them only reads."""

import json
import statistics
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, NamedTuple

from mars_score.data.contexts import as_prose
from mars_score.infilling.augmented import AugmentedReference
from mars_score.metrics.explanation import Explanation, whole_page
from mars_score.models.signature import Signature
from mars_score.scoring.row import Term

_SHOWN = 10  # rows in a notebook


@dataclass(frozen=True)
class ReferenceScore:
    """A candidate against one human reference.

    Attributes:
        augmented: the reference with its augmentations.
        similarities: with each of ``augmented.texts``, in [-1, 1]: token recall or, with
            ``matching="sentences"``, the cosine.
        score: their aggregate (section 2.3; setting ``augmentation_aggregation``).
    """

    augmented: AugmentedReference
    similarities: tuple[float, ...]
    score: float

    @property
    def compared(self) -> tuple[tuple[str, float, str], ...]:
        """What the candidate was compared with, to show: (kind, similarity, text); the reference first."""
        kinds = ["reference", *(f"masked {one.mask_ratio:.0%}" for one in self.augmented.augmentations)]
        return tuple(zip(kinds, self.similarities, self.augmented.texts, strict=True))


@dataclass(frozen=True)
class SampleScore:
    """A candidate against one sample: its text and the similarity with it, as in :class:`ReferenceScore`."""

    text: str
    similarity: float


@dataclass(frozen=True)
class RowScore:
    """A candidate's score and its parts; a blank one scores 0.0 and has neither references nor terms.

    Attributes:
        score: the weighted sum of the terms.
        references: the candidate against each reference.
        terms: that of the references is the aggregate of ``references``.
        samples: the candidate against each sample.
        notices: those of :data:`mars_score.errors.NOTICES` that concern it.
    """

    score: float
    references: tuple[ReferenceScore, ...]
    terms: tuple[Term, ...] = ()
    samples: tuple[SampleScore, ...] = ()
    notices: frozenset[str] = frozenset()

    @property
    def texts(self) -> tuple[str, ...]:
        """The references, their infills and the samples, in order and without repetitions."""
        references = [text for reference in self.references for text in reference.augmented.texts]
        return tuple(dict.fromkeys([*references, *(sample.text for sample in self.samples)]))


class ScoredTexts(NamedTuple):
    """What a score is of.

    Attributes:
        row: number of the input row, from 0; that of the candidates of one row is the same.
        candidate: without outer whitespace.
        references: by people.
        context: blank for none.
    """

    row: int
    candidate: str
    references: tuple[str, ...]
    context: str


@dataclass(frozen=True)
class MarsResult:
    """Scores of a call.

    Attributes:
        rows: one entry per candidate, in input order.
        signature: all that the scores depend on besides the texts; cite it beside the score.
        notices: sentences on rows that were treated in a special way (blank, shortened), with their numbers.
        texts: what each entry of ``rows`` is the score of.
        explanations: why each entry of ``rows`` is what it is; none unless asked for.
    """

    rows: tuple[RowScore, ...]
    signature: Signature
    notices: tuple[str, ...] = ()
    texts: tuple[ScoredTexts, ...] = ()
    explanations: tuple[Explanation, ...] = ()

    def __repr__(self) -> str:
        return f"MarsResult(score={self.score:.4f}, rows={len(self.rows)}, signature='{self.signature}')"

    @property
    def scores(self) -> list[float]:
        """One score per row, in input order."""
        return [row.score for row in self.rows]

    @property
    def score(self) -> float:
        """The mean over rows, rounded once, so that it does not depend on their order; 0.0 for no rows."""
        return statistics.mean(self.scores) if self.rows else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, strings and numbers, ready for JSON."""
        return {
            "mars": self.score,
            "scores": self.scores,
            "signature": str(self.signature),
            "settings": self.signature.to_dict(),
            "notices": list(self.notices),
            "rows": [row_to_dict(row) for row in self.rows],
            **({"explanations": [one.to_dict() for one in self.explanations]} if self.explanations else {}),
        }

    def _repr_html_(self) -> str:
        """For notebooks: the mean, and the explanations of the lowest rows where there are any."""
        texts = zip(self.texts, self.rows, strict=True)
        plain = [Explanation(text.candidate, row.score, row.terms) for text, row in texts]
        lowest = sorted(self.explanations or plain, key=lambda explanation: explanation.score)[:_SHOWN]
        left = len(self.rows) - len(lowest)
        more = f"<p>The lowest {len(lowest)}; {left} more.</p>" if left else ""
        return (
            f"<p><b>MARS {self.score:.3f}</b>, rows: {len(self.rows)}</p>{more}{whole_page(lowest)}"
            f"<p><small>{escape(str(self.signature))}</small></p>"
        )

    def to_records(self) -> list[dict[str, Any]]:
        """Per candidate a dict of its input row's number, the texts, the score as ``"mars"``, and its terms.

        ``"terms"`` and ``"weights"`` are dicts by the terms' names: the score is the sum of value times weight.
        ``"samples"`` are those that the score depends on.
        """
        return [
            {
                "row": texts.row,
                "prediction": texts.candidate,
                "references": list(texts.references),
                "context": as_prose(texts.context),
                "mars": row.score,
                "terms": {term.name: term.value for term in row.terms},
                "weights": {term.name: term.weight for term in row.terms},
                "samples": [sample.text for sample in row.samples],
            }
            for texts, row in zip(self.texts, self.rows, strict=True)
        ]

    def to_pandas(self) -> Any:
        """``to_records`` as a pandas frame; terms and weights are columns such as ``terms.references``.

        Raises:
            ImportError: pandas is missing.
        """
        import pandas

        return pandas.json_normalize(self.to_records(), max_level=1)

    def to_json(self, **kwargs: Any) -> str:
        """``to_dict`` as JSON text; keyword arguments go to ``json.dumps``."""
        return json.dumps(self.to_dict(), ensure_ascii=False, **kwargs)


def augmented_to_dict(augmented: AugmentedReference) -> dict[str, Any]:
    """An augmented reference as plain data."""
    return {
        "reference": augmented.reference,
        "augmentations": [
            {"mask_ratio": one.mask_ratio, "template": str(one.template), "text": one.text}
            for one in augmented.augmentations
        ],
    }


def row_to_dict(row: RowScore) -> dict[str, Any]:
    """The score of a row and its parts, as plain data."""
    return {
        "score": row.score,
        "terms": [asdict(term) for term in row.terms],
        "references": [
            {
                **augmented_to_dict(reference.augmented),
                "similarities": list(reference.similarities),
                "score": reference.score,
            }
            for reference in row.references
        ],
        "samples": [asdict(sample) for sample in row.samples],
    }
