"""Aspects: single sides of a candidate, from its terms and judgements; no model runs for them alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mars_score.rows import Judgement, LogProbability, Term

UNLIKELY = -10.0  # nats per token at which fluency is 0: about a uniform guess among 22,000 tokens


class Aspects(NamedTuple):
    """Sides of a candidate that people rate apart, each in [0, 1]; None where the score does not compute it.

    Attributes:
        reference: how much of the reference it says: the value of the term ``"references"``.
        context: how near it is to the context: the value of the term ``"context"``.
        fluency: how likely it is without the context: 1 at a mean log probability of 0 nats per token, 0 at -10.
        repetition: share of its words that are repeated; the only aspect of which less is better.
        supported: probability that the context entails each of its sentences: that of the worst one.
    """

    reference: float | None = None
    context: float | None = None
    fluency: float | None = None
    repetition: float | None = None
    supported: float | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.2f}" for name, value in self._asdict().items() if value is not None)


def find_aspects(
    terms: Iterable[Term], log_p: LogProbability | None = None, judgements: Sequence[Judgement] = ()
) -> Aspects:
    """Find the aspects of a candidate.

    Args:
        terms: of its score.
        log_p: its log probability; None: not computed.
        judgements: of its sentences.
    """
    values = {term.name: term.value for term in terms}
    entailed = [one.by_context.entailment for one in judgements if one.by_context]
    return Aspects(
        reference=_limited(values.get("references")),
        context=_limited(values.get("context")),
        fluency=_limited(None if log_p is None else 1 - log_p.alone / UNLIKELY),
        repetition=_limited(values.get("repetition")),
        supported=_limited(min(entailed, default=None)),
    )


def _limited(value: float | None) -> float | None:
    return None if value is None else min(1.0, max(0.0, value))
