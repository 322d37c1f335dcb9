"""The functions behind the buttons and the API; exceptions become messages without a traceback."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from html import escape
from typing import Any, NamedTuple

import gradio as gr

from mars_score.errors import ModelUnavailableError
from mars_score.space.answer import Answer
from mars_score.space.engine import Engine
from mars_score.space.inputs import Choices, Example, Inquiry, check_paper, read_question
from mars_score.space.limits import Refused, Work
from mars_score.space.links import read_query, to_query
from mars_score.space.pages import SCORING, WAITING, notices_page, ranking_page
from mars_score.space.tables import compared_page

PRIVATE: dict[str, Any] = {"api_visibility": "private"}  # of events: not a part of the API
CONTROLS = [field.name for field in fields(Choices) if field.name != "paper"]  # of the page, in their order
_log = logging.getLogger(__name__)


class Page(NamedTuple):
    """What the page shows of an answer: HTML, or updates of its parts."""

    notices: str = ""
    ranking: str = WAITING
    compared: str = ""
    signature: str = ""
    link: str = ""  # its query alone, as only the browser knows the address of the page
    inquiry: Inquiry | None = None  # that was answered
    paper: Any = None  # the button that adds the paper's MARS


@contextmanager
def friendly(*, html: bool = True) -> Iterator[None]:
    """Turn a refusal into its message, for the page escaped, and any other exception into one without details."""
    try:
        yield
    except Refused as error:
        message = escape(str(error)) if html else str(error)
        raise gr.Error(message, title="Please check", print_exception=False) from None
    except Exception as error:
        _log.exception("Unexpected")
        message = "Something went wrong here. Please try again, perhaps with other texts."
        if isinstance(error, ModelUnavailableError):
            message = "The models cannot be loaded right now. Please try again later."
        raise gr.Error(message, print_exception=False) from None


class Handlers:
    """The functions behind the page and the API; ``settings`` are the values of the controls."""

    def __init__(self, engine: Engine, work: Work | None = None) -> None:
        self._engine = engine
        self._work = work or Work()

    def page(self, request: gr.Request, *values: Any) -> Page:
        """Score what is on the page: context, references, candidates, samples, and the values of the controls."""
        with friendly():
            choices = Choices.read(dict(zip(CONTROLS, values[4:], strict=True)))
            inquiry = Inquiry(read_question(*values[:4]), choices)
            return show(self._answer(request, inquiry), inquiry)

    def api(
        self,
        context: str,
        references: list[str],
        candidates: list[str],
        settings: dict[str, Any] | None = None,
        samples: list[str] | None = None,
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Score candidates against references in a context, best first, with BLEU and ROUGE-L.

        Without references the context alone counts, and there are no other metrics. The settings are "task",
        "reference_aggregation" and "use_context", as of the package, and "paper": true to compute the paper's
        MARS, too. Samples are texts that others than the candidates' systems wrote for the context, such as a
        language model. Blank texts are left out; "index" is the place among the rest.
        """
        with friendly(html=False):
            question = read_question(context, references, candidates, samples)
            inquiry = Inquiry(question, Choices.read(settings or {}))
            return self._answer(request, inquiry).to_dict()

    def _answer(self, request: gr.Request | None, inquiry: Inquiry) -> Answer:
        if prepared := self._engine.prepared(inquiry):
            return prepared
        if inquiry.choices.paper:
            check_paper(inquiry.question.references)
        with self._work.of(request) as progress:
            return self._engine.answer(inquiry, progress)

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
        inquiry = Inquiry(example.question, Choices())
        prepared = self._engine.prepared(inquiry)
        page = show(prepared, inquiry) if prepared else Page()
        return None, example.lesson, inquiry, page._replace(notices=f"{notices_page(notices)}{page.notices}")

    def follow(self, request: gr.Request, linked: Inquiry) -> Page:
        """Score what a link asks for."""
        with friendly():
            return show(self._answer(request, linked), linked)

    def paper(self, request: gr.Request, inquiry: Inquiry) -> Page:
        """Add the paper's MARS to what is shown; its button is there once something is."""
        with friendly():
            inquiry = Inquiry(inquiry.question, replace(inquiry.choices, paper=True))
            return show(self._answer(request, inquiry), inquiry)


def show(answer: Answer, inquiry: Inquiry) -> Page:
    """An answer as the parts of the page."""
    notices = list(answer.notices)
    try:
        link = to_query(inquiry)
    except Refused as error:
        link = ""
        notices.append(str(error))
    return Page(
        notices_page(notices),
        ranking_page(answer),
        compared_page(answer),
        answer.signature,
        link,
        inquiry,
        gr.update(visible=bool(answer.question.references) and not answer.paper),
    )
