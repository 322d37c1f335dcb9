"""Judge one output: a score, pass or fail, and a reason in plain English."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from mars_score.errors import brief
from mars_score.explanation import Explanation
from mars_score.metrics.plus import TERMS
from mars_score.rows import Row, Term
from mars_score.scorer import MarsScorer
from mars_score.settings_dict import ScorerDict

if TYPE_CHECKING:
    from mars_score.results import MarsResult

# Thresholds and words. With preset "mini" in examples/, 90 % of unrelated texts have a token recall below .3 and a
# cosine with the context below .25, and 90 % of close texts have a recall above .6.
_SAYS = ((0.6, "most"), (0.3, "some"), (-1.0, "little"))
_IS = ((0.5, "close to"), (0.25, "near"), (-1.0, "far from"))
_SMALL = 0.05  # The reason leaves out terms that change the score by less.


class JudgeResult(TypedDict):
    """The result of :func:`judge`, ready for JSON.

    Attributes:
        score: the score, mostly in [0, 1]. Higher is better.
        passed: whether the score reaches the threshold and no sentence is contradicted. None if there is
            neither a threshold nor a contradiction.
        reason: the score and its causes.
        metadata: ``terms`` (value and weight by name), ``aspects``, ``percentile`` (or None), ``contradicted`` and
            ``unsupported`` (dicts of :class:`mars_score.rows.Verdict`), ``supported`` (as in the aspects),
            ``notices`` and ``signature``.
    """

    score: float
    passed: bool | None
    reason: str
    metadata: dict[str, Any]


def judge(
    output: str,
    reference: str | Sequence[str] | None = None,
    context: object = None,
    *,
    threshold: float | None = None,
    allow_contradictions: bool = False,
    **settings: Unpack[ScorerDict],
) -> JudgeResult:
    """Judge one output.

    Args:
        output: the text to judge. A blank text scores 0.0.
        reference: a text or several, or None to judge by the context alone.
        context: as for :meth:`mars_score.MarsScorer.score`, or None to judge by the reference alone.
        threshold: lowest score that passes, a finite number, or None for no threshold.
        allow_contradictions: whether an output with a contradicted sentence can pass.
        settings: arguments of :class:`mars_score.MarsScorer`. Models given by name stay loaded between calls.

    Returns:
        Score, pass or fail, metadata, and a reason such as ``0.31: says little of the reference (0.24); sentence 2
        contradicts the context "The pool reopens on Saturday." (0.97); sentence 3: 1970 is not in the context``.

    Raises:
        TypeError, ValueError: bad input, or an unknown setting.
        ModelUnavailableError: a model cannot be loaded.
    """
    if reference is None and context is None:
        raise ValueError("there is nothing to judge the output by; give a reference, a context, or both")
    if context is None:
        settings.setdefault("use_context", False)
    gate = Gate(threshold, allow_contradictions)
    return judge_by(MarsScorer(**settings), output, reference, context, gate)


class Gate(NamedTuple):
    """The conditions to pass, as arguments of :func:`judge`."""

    threshold: float | None = None
    allow_contradictions: bool = False


def judge_by(
    scorer: MarsScorer, output: str, reference: str | Sequence[str] | None, context: Any, gate: Gate
) -> JudgeResult:
    """Judge one output with a scorer, as :func:`judge` does."""
    if not isinstance(output, str):
        raise TypeError(f"output must be a text, got {type(output).__name__}; judge each text by itself")
    least = None if gate.threshold is None else _finite(gate.threshold)
    columns = [[value] if value is not None else None for value in (reference, context)]
    result = scorer.score([output], *columns, explain=True)
    explanation, percentile, row_score = result.explanations[0], result.percentiles[0], result.row_scores[0]
    passed = None if least is None else result.score >= least
    if row_score.contradicted and not gate.allow_contradictions:
        passed = False
    return {
        "score": result.score,
        "passed": passed,
        "reason": f"{result.score:.2f}: {'; '.join(_reasons(explanation, result))}",
        "metadata": {
            "terms": {term.name: {"value": term.value, "weight": term.weight} for term in row_score.terms},
            "aspects": row_score.aspects._asdict(),
            "percentile": percentile and percentile._asdict(),
            **row_score.found(),
            "notices": list(result.notices),
            "signature": str(result.signature),
        },
    }


def _finite(threshold: object) -> float:
    """Return a threshold as a float. A comparison with a NumPy number would not return a bool."""
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise TypeError(f"threshold must be a number, got {brief(threshold)}; convert it or leave it out")
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be a finite number, got {threshold}; change it or leave it out")
    return float(threshold)


def _reasons(explanation: Explanation, result: MarsResult) -> list[str]:
    """Return a phrase for each term that matters and for each finding."""
    if not explanation.candidate:
        return ["the output is blank"]
    row = explanation.row
    phrases = [phrase for term in explanation.score.terms if (phrase := _term_in_words(term, row, result))]
    return phrases + [finding.with_number() for finding in explanation.findings]


def _term_in_words(term: Term, row: Row, result: MarsResult) -> str:
    """Describe a term, or "" if it adds or costs little."""
    reference = "the reference" if len(row.references) == 1 else "the nearest reference"
    value = f"({term.value:.2f})"
    if term.name == "references" and result.signature.entries["variant"] != "paper":
        return f"says {_word(_SAYS, term.value)} of {reference} {value}"
    if term.name in ("references", "sentences"):
        return f"is {_word(_IS, term.value)} {reference} as a whole {value}"
    if term.name == "context":
        return f"is {_word(_IS, term.value)} the context {value}"
    points = term.value * term.weight
    if abs(points) < _SMALL:
        return ""
    text = TERMS.get(term.name)  # None for a term of a learned head
    phrase = text and (text.adds if points > 0 else text.costs)
    return f"{phrase or term.name} {'add' if points > 0 else 'cost'} {abs(points):.2f}"


def _word(words: Sequence[tuple[float, str]], value: float) -> str:
    return next((word for least, word in words if value >= least), words[-1][1])
