"""The result of a call: the scores with everything that is printed, plotted or written."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from mars_score.data.cleaning import are_words
from mars_score.errors import Notice, Notices
from mars_score.explanation import Explanation, page_of
from mars_score.findings import LABELS, label_of
from mars_score.percentiles import Percentile, find_percentiles
from mars_score.rows import Row, RowScore
from mars_score.signature import Signature
from mars_score.text import as_prose

_SHOWN = 10  # rows in a notebook
FOUND = tuple(RowScore(0.0).found())  # keys of a row's dictionary


@dataclass(frozen=True)
class MarsResult:
    """The scores of a call.

    Attributes:
        rows: one row per candidate, in input order.
        row_scores: one score per row.
        signature: everything that the scores depend on besides the texts. Cite it beside the score.
        notices: sentences about rows that were treated specially (blank, shortened), with their numbers.
        numbers: index of each candidate's input row, from 0. Candidates of one input row share it.
        explanations: one per row if ``explain=True``, else empty.
    """

    rows: tuple[Row, ...]
    row_scores: tuple[RowScore, ...]
    signature: Signature
    notices: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    explanations: tuple[Explanation, ...] = ()

    def __repr__(self) -> str:
        return f"MarsResult(score={self.score:.4f}, rows={len(self.rows)}, signature='{self.signature}')"

    @property
    def scores(self) -> list[float]:
        """Return one score per row, in input order."""
        return [score.score for score in self.row_scores]

    @property
    def score(self) -> float:
        """Return the mean over rows, independent of their order, or 0.0 without rows."""
        return statistics.mean(self.scores) if self.rows else 0.0

    @property
    def faithfulness(self) -> float | None:
        """Return the mean aspect ``supported`` of the summaries, or None without any.

        It needs no references. Its reliability: research/entailment/measure.md.
        """
        known = [score.aspects.supported for score in self.row_scores if score.aspects.supported is not None]
        return statistics.mean(known) if known else None

    @property
    def percentiles(self) -> list[Percentile | None]:
        """Return the percentile of each score; None as in :func:`mars_score.percentiles.find_percentiles`."""
        return find_percentiles(self.rows, self.row_scores, self.signature)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dicts, strings and numbers, ready for JSON."""
        rows = [score.to_dict() for score in self.row_scores]
        return {
            "mars": self.score,
            "scores": self.scores,
            **{name: [row[name] for row in rows] for name in FOUND},
            "faithfulness": self.faithfulness,
            "signature": str(self.signature),
            "settings": self.signature.to_dict(),
            "notices": list(self.notices),
            "rows": [
                row | {"percentile": percentile and percentile._asdict()}
                for row, percentile in zip(rows, self.percentiles, strict=True)
            ],
            **({"explanations": [one.to_dict() for one in self.explanations]} if self.explanations else {}),
        }

    def to_json(self, **kwargs: Any) -> str:
        """Return :meth:`to_dict` as JSON. Keyword arguments go to ``json.dumps``."""
        return json.dumps(self.to_dict(), ensure_ascii=False, **kwargs)

    def to_records(self) -> list[dict[str, Any]]:
        """Return a flat dict per candidate, with the texts and the score ``"mars"``.

        ``"row"`` is the index of its input row. ``"terms"`` and ``"weights"`` map names of terms to numbers, and
        the score is the sum of value times weight. ``"aspects"`` and ``"percentile"`` (or None) have the fields of
        :class:`mars_score.rows.Aspects` and :class:`Percentile`; ``"contradicted"`` and ``"unsupported"`` list
        :class:`mars_score.rows.Verdict`.
        """
        return [
            {
                "row": number,
                "prediction": row.candidate,
                "references": list(row.references),
                "context": as_prose(row.prompt),
                "task": row.task,
                "mars": score.score,
                "terms": {term.name: term.value for term in score.terms},
                "weights": {term.name: term.weight for term in score.terms},
                "aspects": score.aspects._asdict(),
                **score.found(),
                "percentile": percentile and percentile._asdict(),
                "samples": [sample.text for sample in score.samples],
            }
            for number, row, score, percentile in zip(
                self.numbers, self.rows, self.row_scores, self.percentiles, strict=True
            )
        ]

    def to_pandas(self) -> Any:
        """Return :meth:`to_records` as a pandas frame. Nested dicts become columns such as ``terms.references``.

        Raises:
            ImportError: pandas is missing.
        """
        import pandas

        return pandas.json_normalize(self.to_records(), max_level=1)

    def _repr_html_(self) -> str:
        """Show the mean and some rows in a notebook: rows with findings first, then the lowest scores."""
        explanations = list(self.explanations or map(Explanation, self.rows, self.row_scores))
        explanations.sort(key=lambda one: (LABELS.index(label_of(one.score)), one.score.score))
        shown = explanations[:_SHOWN]
        left = len(self.rows) - len(shown)
        first = "Those with findings, then the lowest:" if left and label_of(shown[0].score) else "The lowest"
        more = f"<p>{first} {len(shown)}; {left} more.</p>" if left else ""
        return (
            f"<p><b>MARS {self.score:.3f}</b>, rows: {len(self.rows)}</p>{more}{page_of(shown)}"
            f"<p><small>{escape(str(self.signature))}</small></p>"
        )


def count_notices(
    counted: Notices, rows: Sequence[Row], numbers: Sequence[int], scores: Sequence[RowScore]
) -> None:
    """Add the notices of some rows to ``counted``, under the numbers of their input rows."""
    # Several candidates of single words for one row were probably one tokenized candidate.
    are_tokens = len(rows) >= 3 * len(set(numbers)) and are_words([row.candidate for row in rows])
    of_all = {Notice.CANDIDATE_TOKENS} if are_tokens else set()
    for number, score in zip(numbers, scores, strict=True):
        counted.add(number, score.notices | of_all)
