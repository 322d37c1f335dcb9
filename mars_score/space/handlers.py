"""The functions behind the buttons and the API; exceptions become messages without a traceback."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import gradio as gr

from mars_score.errors import ModelUnavailableError
from mars_score.space.answer import Answer, Engine
from mars_score.space.limits import Refused, Work
from mars_score.space.pages import WAITING, compared_page, notices_page, ranking_page
from mars_score.space.questions import SETTINGS, Question, read_question

BY_FORM = "form"  # what the page has for a task of None
_log = logging.getLogger(__name__)


class Page(NamedTuple):
    """What the page shows of an answer: HTML, or updates of its parts."""

    notices: str = ""
    ranking: str = WAITING
    compared: str = ""
    signature: str = ""
    question: Question | None = None  # that was answered
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
    """The functions behind the page and the API."""

    def __init__(self, engine: Engine, work: Work | None = None) -> None:
        self._engine = engine
        self._work = work or Work()

    def page(self, request: gr.Request, *values: Any) -> Page:
        """Score what is on the page: context, references, candidates, samples, and the values of ``SETTINGS``."""
        with friendly():
            context, references, candidates, samples, task, *others = values
            settings = dict(zip(SETTINGS, (None if task == BY_FORM else task, *others), strict=True))
            question = read_question(context, references, candidates, samples, settings)
            return show(self._answer(request, question))

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
            question = read_question(context, references, candidates, samples, settings)
            return self._answer(request, question).to_dict()

    def _answer(self, request: gr.Request | None, question: Question) -> Answer:
        if prepared := self._engine.prepared(question):
            return prepared
        with self._work.of(request) as progress:
            return self._engine.answer(question, progress)

    def arrive(self, example: Question) -> Page:
        """What a visitor sees on arrival: the answer to an example, if it is ready."""
        prepared = self._engine.prepared(example)
        return show(prepared) if prepared else Page()

    def paper(self, request: gr.Request, question: Question) -> Page:
        """Score what is shown already by the paper's MARS, too."""
        with friendly():
            return show(self._answer(request, replace(question, paper=True)))


def show(answer: Answer) -> Page:
    """An answer as the parts of the page."""
    pages = notices_page(answer.notices), ranking_page(answer), compared_page(answer)
    addable = bool(answer.question.references) and not answer.question.paper
    return Page(*pages, answer.signature, answer.question, gr.update(visible=addable))
