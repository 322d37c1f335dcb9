"""The functions behind the buttons and the API; exceptions become messages without a traceback."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, NamedTuple

import gradio as gr

from mars_score.errors import ModelUnavailableError
from mars_score.scoring.result import MarsResult
from mars_score.space.answer import Answer, plain_notice
from mars_score.space.card import draw_card, unknown_characters
from mars_score.space.choices import Choices
from mars_score.space.compared import compared_page, masked_words
from mars_score.space.downloads import Downloads
from mars_score.space.engine import Engine
from mars_score.space.examples import Example
from mars_score.space.file_pages import batch_rows, histogram_page, lowest_page, table_page
from mars_score.space.fooling import fooling_page, versions_of, with_versions
from mars_score.space.inputs import read_question
from mars_score.space.limits import RateLimit, Refused, check_batch
from mars_score.space.links import Inquiry, read_query, to_query
from mars_score.space.pages import SCORING, WAITING, notices_page, ranking_page
from mars_score.space.uploads import SAMPLE, Batch, read_upload

_log = logging.getLogger(__name__)
_PREVIEW = 5  # rows
_LOWEST = 5  # rows that are explained
_NOTHING_SCORED = "Please score some candidates first."


class Page(NamedTuple):
    """What the page shows of an answer: HTML, or updates of its parts.

    Attributes:
        link: to this answer; its query alone, as only the browser knows the address of the page.
        inquiry: what was answered.
        fool: the choice of a candidate to change.
        fooled: empty, as what is shown there is of another answer.
        card: likewise.
    """

    notices: str = ""
    ranking: str = WAITING
    masked: Any = None
    compared: str = ""
    signature: str = ""
    link: str = ""
    inquiry: Inquiry | None = None
    fool: Any = None
    fooled: str = ""
    card: Any = None


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
        self._arrival: Answer | None = None
        self._arrival_lock = threading.Lock()

    def page(self, request: gr.Request, context: str, references: str, candidates: str, *settings: Any) -> Page:
        """Score what is on the page; ``settings`` are the values of its controls."""
        with friendly():
            inquiry = read_inquiry(context, references, candidates, *settings)
            return show(self._answer(request, inquiry), inquiry)

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
        learned: str | None = Choices.learned,
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Score candidates against references in a context, best first, with BLEU, ROUGE-L and token recall.

        Without references the context alone counts, and there are no other metrics.
        The settings are those of the package. Blank texts are left out; "index" is the place among the rest.
        "similarities" are in the order of the candidates that were sent.
        """
        infilling = max_mask_ratio, planner, augmentation_aggregation, q
        settings = *infilling, reference_aggregation, use_context, samples, task, learned
        with friendly(html=False):
            inquiry = read_inquiry(context, references, candidates, *settings)
            return self._answer(request, inquiry, compared=False).to_dict()

    def _answer(self, request: gr.Request | None, inquiry: Inquiry, *, compared: bool = True) -> Answer:
        if not inquiry.question.references:
            inquiry.choices.check_reference_free()
        self._single.check(_visitor(request))
        return self._engine.answer(inquiry.question, inquiry.choices, compared=compared)

    def arrive(self, query: str, example: Example) -> tuple[Inquiry | None, str, Inquiry, Page]:
        """What a visitor sees on arrival: what the link asks for, else an example, with its answer if ready.

        Returns:
            What is still to be scored, the lesson of the example, what the fields hold, and the page.
        """
        notices = []
        try:
            if linked := read_query(query):
                return linked, "", linked, Page(ranking=SCORING)
        except Refused as error:
            notices = [f"{str(error).removesuffix('.')}. Here is an example instead."]
        return None, example.lesson, Inquiry(example.question, Choices()), self.first_page(example, notices)

    def follow(self, request: gr.Request, linked: Inquiry | None) -> Page:
        """Score what a link asks for."""
        with friendly():
            if linked is None:
                raise Refused(_NOTHING_SCORED)
            return show(self._answer(request, linked), linked)

    def first_page(self, example: Example, notices: Sequence[str] = ()) -> Page:
        """An example with its answer, once the models are loaded."""
        with self._arrival_lock:
            if self._arrival is None and self._engine.ready.is_set():
                with friendly():
                    self._arrival = self._engine.answer(example.question, Choices())
        if self._arrival is None:
            return Page(notices_page(notices))
        page = show(self._arrival, Inquiry(example.question, Choices()))
        return page._replace(notices=f"{notices_page(notices)}{page.notices}")

    def fool(self, request: gr.Request, inquiry: Inquiry | None, index: int | None) -> str:
        """A candidate beside changed versions of it."""
        with friendly():
            if inquiry is None or index is None:
                raise Refused(_NOTHING_SCORED)
            versions = versions_of(inquiry.question, index)
            question = with_versions(inquiry.question, index, versions)
            return fooling_page(self._answer(request, Inquiry(question, inquiry.choices)), versions)

    def card(self, request: gr.Request, inquiry: Inquiry | None) -> Any:
        """The answer as an image."""
        with friendly():
            if inquiry is None:
                raise Refused(_NOTHING_SCORED)
            answer = self._answer(request, inquiry)
            if unknown := unknown_characters(answer):
                gr.Warning(
                    f"The font of the image has no sign for {escape(unknown[:20])}: they are drawn as boxes."
                )
            return gr.update(value=self._downloads.keep("mars-card.png", draw_card(answer)), visible=True)

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
            yield self._batch_page(batch, result, choices)

    def _batch_page(self, batch: Batch, result: MarsResult, choices: Choices) -> tuple[Any, ...]:
        csv_path, jsonl_path = self._downloads.write(batch_rows(batch, result))
        notices = notices_page([plain_notice(one, "row") for one in result.notices])
        lowest = lowest_page(self._engine.lowest(batch, result, choices, _LOWEST), batch.contexts)
        return (
            f"{notices}{histogram_page(result.scores)}{lowest}",
            gr.update(value=csv_path, visible=True),
            gr.update(value=jsonl_path, visible=True),
            gr.update(value=str(result.signature), visible=True),
        )


def read_inquiry(context: Any, references: Any, candidates: Any, *settings: Any) -> Inquiry:
    """Check texts and settings.

    Raises:
        Refused: they cannot be scored.
    """
    return Inquiry(read_question(context, references, candidates), Choices.read(*settings))


def show(answer: Answer, inquiry: Inquiry) -> Page:
    """An answer as the parts of the page."""
    masked = masked_words(answer)
    notices = list(answer.notices)
    try:
        link = to_query(inquiry)
    except Refused as error:
        link = ""
        notices.append(str(error))
    candidates = [
        (f"{place}. {answer.question.candidates[index]}", index) for place, index in enumerate(answer.order, 1)
    ]
    return Page(
        notices_page(notices),
        ranking_page(answer),
        gr.update(value=masked, visible=bool(masked)),
        compared_page(answer),
        answer.signature,
        link,
        inquiry,
        gr.update(choices=candidates, value=answer.order[0]),
        "",
        gr.update(value=None, visible=False),
    )


def _visitor(request: gr.Request | None) -> str:
    """What tells visitors apart: the session, else the address."""
    if request is None:
        return "unknown"
    return str(request.session_hash or getattr(request.client, "host", "unknown"))
