"""The scores of a file as HTML and as rows to download; texts of visitors are escaped here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from mars_score.meta.metrics.bleu import sentence_bleu
from mars_score.meta.metrics.rouge import rouge_l
from mars_score.scoring.explain.explanation import LEGEND, Explanation, explanation_page
from mars_score.scoring.result import MarsResult
from mars_score.space.uploads import Batch


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:120]} …"


def histogram_page(scores: Sequence[float], bins: int = 10) -> str:
    """A histogram of scores from 0 to 1; lower and higher ones are in the first and last bin."""
    counts = [0] * bins
    for score in scores:
        counts[min(max(int(score * bins), 0), bins - 1)] += 1
    tallest = max(counts) or 1
    bars = "".join(
        f'<div class="mars-column" title="{number / bins:.1f} to {(number + 1) / bins:.1f}: {count}">'
        f'<i>{count or ""}</i><b style="height:{100 * count / tallest:.0f}%"></b>'
        f"<span>{number / bins:.1f}</span></div>"
        for number, count in enumerate(counts)
    )
    mean = sum(scores) / len(scores) if scores else 0.0
    return (
        f'<div class="mars-summary"><div><strong>{mean:.3f}</strong><span>mean MARS score</span></div>'
        f"<div><strong>{len(scores)}</strong><span>row{'' if len(scores) == 1 else 's'}</span></div></div>"
        f'<div class="mars-histogram" role="img" aria-label="Histogram of scores">{bars}</div>'
    )


def lowest_page(lowest: Mapping[int, Explanation], contexts: Sequence[str]) -> str:
    """Rows with the lowest scores, the lowest first, each with why."""
    items = "".join(_row(index, explanation, contexts[index]) for index, explanation in lowest.items())
    legend = LEGEND if any(match.words for explanation in lowest.values() for match in explanation.matches) else ""
    return f'<h3 class="mars-title">The lowest rows, and why</h3><ol class="mars-ranking">{items}</ol>{legend}'


def _row(index: int, explanation: Explanation, context: str) -> str:
    sums = "".join(f"<br>{escape(line)}" for line in explanation.sums()) or "<br>A blank candidate scores 0."
    before = f'<p class="mars-hint">{escape(_short(context))}</p>' if context.strip() else ""
    return (
        f'<li class="mars-card"><span class="mars-place" title="row of the file">{index + 1}</span><div>{before}'
        f'<p class="mars-text">{escape(explanation.candidate)}</p>'
        f'<p class="mars-hint"><b>MARS {explanation.score:.3f}</b>{sums}</p>'
        f"{explanation_page(explanation)}</div></li>"
    )


def batch_rows(batch: Batch, result: MarsResult) -> list[dict[str, Any]]:
    """One row of the download for each row of the upload."""
    rows = []
    for number, (score, candidate, references) in enumerate(
        zip(result.scores, batch.candidates, batch.references, strict=True), 1
    ):
        row: dict[str, Any] = {"row": number, "mars": round(score, 6)}
        if references:
            row["bleu"] = round(sentence_bleu(candidate, references), 3)
            row["rouge_l"] = round(rouge_l(candidate, references), 6)
        rows.append({**row, "prediction": candidate, "signature": str(result.signature)})
    return rows
