"""Aspects: single sides of a candidate, from its terms and judgements; no model runs for them alone."""

from collections.abc import Iterable, Sequence

from mars_score.rows import Aspects, Judgement, LogProbability, Term

UNLIKELY = -10.0  # nats per token at which fluency is 0: about a uniform guess among 22,000 tokens


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
