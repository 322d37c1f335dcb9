"""The functions behind the buttons and the API; exceptions become messages without a traceback."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import gradio as gr

from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics.bleu import sentence_bleu
from mars_score.meta.metrics.rouge import rouge_l
from mars_score.result import MarsResult, RowScore
from mars_score.space.answer import Answer, plain_notice, plain_recall
from mars_score.space.choices import Choices
from mars_score.space.downloads import Downloads
from mars_score.space.engine import Engine
from mars_score.space.inputs import Question, read_question
from mars_score.space.limits import RateLimit, Refused, check_batch
from mars_score.space.pages import (
    WAITING,
    compared_page,
    histogram_page,
    masked_words,
    notices_page,
    ranking_page,
    table_page,
)
from mars_score.space.uploads import SAMPLE, Batch, read_upload

_log = logging.getLogger(__name__)
_PREVIEW = 5  # rows

Page = tuple[str, str, dict[str, Any], str, str]  # notices, ranking, masked words, compared texts, signature


@contextmanager
def friendly(*, html: bool = True) -> Iterator[None]:
    """Turn a refusal into its message, and any other exception into a message without details.

    Args:
        html: the page shows messages as HTML, so they are escaped; the API sends plain text.
    """
    try:
        yield
    except Refused as error:
        message = escape(str(error)) if html else str(error)
        raise gr.Error(message, title="Please check", print_exception=False) from None
    except ModelUnavailableError:
        _log.exception("A model is missing")
        message = "The models cannot be loaded right now. Please try again later."
        raise gr.Error(message, print_exception=False) from None
    except Exception:
        _log.exception("Unexpected")
        message = "Something went wrong here. Please try again, perhaps with other texts."
        raise gr.Error(message, print_exception=False) from None


class Handlers:
    """The functions behind the page and the API; ``settings`` are the fields of Choices in their order.

    Args:
        engine: scores.
        single: limits the calls for one question.
        batch: limits the batches.
    """

    def __init__(self, engine: Engine, single: RateLimit | None = None, batch: RateLimit | None = None) -> None:
        self._engine = engine
        self._single = single or RateLimit(30, 60)
        self._batch = batch or RateLimit(4, 300)
        self._downloads = Downloads()
        self._arrival: Page | None = None
        self._arrival_lock = threading.Lock()

    def page(self, request: gr.Request, context: str, references: str, candidates: str, *settings: Any) -> Page:
        """Score what is on the page; ``settings`` are the values of its controls."""
        with friendly():
            return show(self._answer(request, context, references, candidates, *settings))

    def api(
        self,
        context: str,
        references: list[str],
        candidates: list[str],
        max_mask_ratio: float = Choices.max_mask_ratio,
        planner: str = Choices.planner,
        augmentation_aggregation: str = Choices.augmentation_aggregation,
        q: float = Choices.q,
        reference_aggregation: str = Choices.reference_aggregation,
        use_context: bool = Choices.use_context,
        samples: int = Choices.samples,
        task: str | None = Choices.task,
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Score candidates against references in a context, best first, with BLEU, ROUGE-L and token recall.

        Without references the context alone counts, and there are no other metrics.
        The settings are those of the package. Blank texts are left out; "index" is the place among the rest.
        "similarities" are in the order of the candidates that were sent.
        """
        infilling = max_mask_ratio, planner, augmentation_aggregation, q
        settings = *infilling, reference_aggregation, use_context, samples, task
        with friendly(html=False):
            return self._answer(request, context, references, candidates, *settings).to_dict()

    def _answer(
        self, request: gr.Request | None, context: Any, references: Any, candidates: Any, *settings: Any
    ) -> Answer:
        question, choices = read_question(context, references, candidates), Choices.read(*settings)
        if not question.references:
            choices.check_reference_free()
        self._single.check(_visitor(request))
        return self._engine.answer(question, choices)

    def first_page(self, question: Question) -> Page:
        """What a visitor sees on arrival: the answer of an example if it can be had at once."""
        with self._arrival_lock:
            if self._arrival is None and self._engine.ready.is_set():
                with friendly():
                    self._arrival = show(self._engine.answer(question, Choices()))
        return self._arrival or ("", WAITING, gr.skip(), "", "")

    def sample(self) -> str:
        """A file to try."""
        return self._downloads.keep("sample.csv", SAMPLE)

    def preview(self, path: str | None, use_context: bool) -> str:
        """The first rows of an uploaded file."""
        if path is None:
            return ""
        with friendly():
            batch = read_upload(path, use_context=use_context)
            columns = zip(batch.candidates, map(" ‖ ".join, batch.references), batch.contexts, strict=True)
            count = len(batch.candidates)
            caption = f"{count} row{'' if count == 1 else 's'}; the first of them:"
            return table_page(("prediction", "reference", "context"), list(columns)[:_PREVIEW], caption)

    def batch(
        self,
        request: gr.Request,
        progress: gr.Progress = gr.Progress(),  # noqa: B008 (how gradio finds it)
        path: str | None = None,
        *settings: Any,
    ) -> Iterator[tuple[Any, ...]]:
        """Score an uploaded file; yields so that it can be stopped between chunks."""
        with friendly():
            choices = Choices.read(*settings)
            batch = read_upload(path, use_context=choices.use_context)
            if not any(batch.references):
                choices.check_reference_free()
            check_batch(batch.contexts, batch.references, planned=choices.planned)
            self._batch.check(_visitor(request))
            columns = batch.candidates, batch.references, batch.contexts
            for done, total in self._engine.prepare(*columns, choices):
                progress((done, total), desc="Scoring", unit="rows")
                yield (gr.skip(),) * 4
            result = self._engine.score(*columns, choices)
            yield self._batch_page(batch, result)

    def _batch_page(self, batch: Batch, result: MarsResult) -> tuple[Any, ...]:
        rows = batch_rows(batch, result)
        csv_path, jsonl_path = self._downloads.write(rows)
        shown = [[str(row["row"]), f"{row['mars']:.3f}", row["prediction"]] for row in rows[: 2 * _PREVIEW]]
        notices = notices_page([plain_notice(one, "row") for one in result.notices])
        table = table_page(
            ("row", "MARS", "prediction"), shown, "The first rows; the files below hold all of them."
        )
        return (
            f"{notices}{histogram_page(result.scores)}{table}",
            gr.update(value=csv_path, visible=True),
            gr.update(value=jsonl_path, visible=True),
            gr.update(value=str(result.signature), visible=True),
        )


def show(answer: Answer) -> Page:
    """An answer as the parts of the page."""
    masked = masked_words(answer)
    return (
        notices_page(answer.notices),
        ranking_page(answer),
        gr.update(value=masked, visible=bool(masked)),
        compared_page(answer),
        answer.signature,
    )


def batch_rows(batch: Batch, result: MarsResult) -> list[dict[str, Any]]:
    """One row of the download for each row of the upload."""
    texts: Sequence[tuple[str, Sequence[str]]] = list(zip(batch.candidates, batch.references, strict=True))
    return [
        {
            "row": number,
            "mars": round(row.score, 6),
            **(_by_references(candidate, references, row) if references else {}),
            "prediction": candidate,
            "signature": str(result.signature),
        }
        for number, ((candidate, references), row) in enumerate(zip(texts, result.rows, strict=True), 1)
    ]


def _by_references(candidate: str, references: Sequence[str], row: RowScore) -> dict[str, float]:
    """What other metrics say of a candidate."""
    return {
        "recall": round(plain_recall(row), 6),
        "bleu": round(sentence_bleu(candidate, references), 3),
        "rouge_l": round(rouge_l(candidate, references), 6),
    }


def _visitor(request: gr.Request | None) -> str:
    """What tells visitors apart: the session, else the address."""
    if request is None:
        return "unknown"
    return str(request.session_hash or getattr(request.client, "host", "unknown"))
