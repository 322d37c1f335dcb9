"""Results of a call: frozen; whatever prints, plots or writes them only takes values from here."""

import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from mars_score.explanation import Explanation, page_of
from mars_score.percentiles import Percentile, find_percentiles
from mars_score.rows import Aspects, AugmentedReference, Infill, ReferenceScore, Row, RowScore, SampleScore, Term
from mars_score.signature import Signature
from mars_score.text import as_prose

_SHOWN = 10  # rows in a notebook


@dataclass(frozen=True)
class MarsResult:
    """Scores of a call.

    Attributes:
        rows: one entry per candidate, in input order.
        signature: all that the scores depend on besides the texts; cite it beside the score.
        notices: sentences on rows that were treated in a special way (blank, shortened), with their numbers.
        texts: what each entry of ``rows`` is the score of.
        numbers: of the input row of each entry, from 0; the candidates of one row have the same.
        explanations: why each entry of ``rows`` is what it is; none unless asked for.
    """

    rows: tuple[RowScore, ...]
    signature: Signature
    notices: tuple[str, ...] = ()
    texts: tuple[Row, ...] = ()
    numbers: tuple[int, ...] = ()
    explanations: tuple[Explanation, ...] = ()

    def __repr__(self) -> str:
        return f"MarsResult(score={self.score:.4f}, rows={len(self.rows)}, signature='{self.signature}')"

    @property
    def scores(self) -> list[float]:
        """Return one score per row, in input order."""
        return [row.score for row in self.rows]

    @property
    def score(self) -> float:
        """Return the mean over rows, rounded once, so that it does not depend on their order; 0.0 for no rows."""
        return statistics.mean(self.scores) if self.rows else 0.0

    @property
    def percentiles(self) -> list[Percentile | None]:
        """Return where each score stands among rated candidates, in input order.

        None where nothing is known: see :func:`mars_score.percentiles.find_percentiles`.
        """
        return find_percentiles(self.texts, self.rows, self.signature)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dicts, strings and numbers, ready for JSON."""
        return {
            "mars": self.score,
            "scores": self.scores,
            "signature": str(self.signature),
            "settings": self.signature.to_dict(),
            "notices": list(self.notices),
            "rows": [
                row_to_dict(row) | {"percentile": percentile and percentile._asdict()}
                for row, percentile in zip(self.rows, self.percentiles, strict=True)
            ],
            **({"explanations": [one.to_dict() for one in self.explanations]} if self.explanations else {}),
        }

    def to_json(self, **kwargs: Any) -> str:
        """Return ``to_dict`` as JSON text; keyword arguments go to ``json.dumps``."""
        return json.dumps(self.to_dict(), ensure_ascii=False, **kwargs)

    def to_records(self) -> list[dict[str, Any]]:
        """Return per candidate a dict of its row's number, the texts, the score as ``"mars"``, and details.

        ``"terms"`` and ``"weights"`` are dicts by the terms' names: the score is the sum of value times weight.
        ``"aspects"`` is one by their names, and ``"percentile"`` one of a :class:`Percentile`, or None.
        """
        return [
            {
                "row": number,
                "prediction": texts.candidate,
                "references": list(texts.references),
                "context": as_prose(texts.context),
                "task": texts.task,
                "mars": row.score,
                "terms": {term.name: term.value for term in row.terms},
                "weights": {term.name: term.weight for term in row.terms},
                "aspects": row.aspects._asdict(),
                "percentile": percentile and percentile._asdict(),
                "samples": [sample.text for sample in row.samples],
            }
            for number, texts, row, percentile in zip(
                self.numbers, self.texts, self.rows, self.percentiles, strict=True
            )
        ]

    def to_pandas(self) -> Any:
        """Return ``to_records`` as a pandas frame; what is in dicts becomes columns such as ``terms.references``.

        Raises:
            ImportError: pandas is missing.
        """
        import pandas

        return pandas.json_normalize(self.to_records(), max_level=1)

    def _repr_html_(self) -> str:
        """Show the mean, and the explanations of the lowest rows where there are any, in a notebook."""
        texts = zip(self.texts, self.rows, strict=True)
        plain = [Explanation(text.candidate, row.score, row.terms, aspects=row.aspects) for text, row in texts]
        lowest = sorted(self.explanations or plain, key=lambda explanation: explanation.score)[:_SHOWN]
        left = len(self.rows) - len(lowest)
        more = f"<p>The lowest {len(lowest)}; {left} more.</p>" if left else ""
        return (
            f"<p><b>MARS {self.score:.3f}</b>, rows: {len(self.rows)}</p>{more}{page_of(lowest)}"
            f"<p><small>{escape(str(self.signature))}</small></p>"
        )


def augmented_to_dict(augmented: AugmentedReference) -> dict[str, Any]:
    """Return an augmented reference as plain data."""
    return {"reference": augmented.reference, "augmentations": [asdict(infill) for infill in augmented.infills]}


def row_to_dict(row: RowScore) -> dict[str, Any]:
    """Return the score of a row and its parts as plain data; its notices are those of the result."""
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
        "aspects": row.aspects._asdict(),
    }


def row_from_dict(stored: Mapping[str, Any], notices: Iterable[str] = ()) -> RowScore:
    """Make the score of a row from what :func:`row_to_dict` gave, and its notices."""
    references = tuple(
        ReferenceScore(
            AugmentedReference(one["reference"], tuple(Infill(**infill) for infill in one["augmentations"])),
            tuple(one["similarities"]),
            one["score"],
        )
        for one in stored["references"]
    )
    terms = tuple(Term(**term) for term in stored["terms"])
    samples = tuple(SampleScore(**sample) for sample in stored["samples"])
    aspects = Aspects(**stored["aspects"])
    return RowScore(stored["score"], terms, references, samples, frozenset(notices), aspects)
