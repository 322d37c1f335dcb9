"""The page: its layout, and the functions behind its buttons and the API.

Exceptions become messages without a traceback.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from mars_score.errors import ModelUnavailableError
from mars_score.rows import TASKS
from mars_score.space.answer import Answer, Answerer
from mars_score.space.limits import MODEL, FairQueue, Refused, WorkLimit, place_of
from mars_score.space.pages import WAITING, compared_page, notices_page, ranking_page
from mars_score.space.questions import DEFAULTS, LIMITS, PRESET, PageExample, Question, read_question

CSS = Path(__file__).with_name("look.css")
_PAPER = "https://aclanthology.org/2021.acl-long.521"
_HEAD = f"""<div class="mars-head"><h1><em>MARS</em> scores text in its context</h1>
<p>A good answer need not repeat the reference. <span>MARS plus also reads the context; beside it are the MARS of
the paper, BLEU and ROUGE-L.</span> <a href="{_PAPER}" target="_blank" rel="noopener">Paper</a></p></div>"""
_PRIVATE: dict[str, Any] = {"api_visibility": "private"}  # of events: not a part of the API
_LIMITED: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": MODEL}
# What a visitor sets, in the order of the page.
VALUES = ("context", "task", "references", "candidates", "samples", "reference_aggregation", "use_context")
_log = logging.getLogger(__name__)


class Page(NamedTuple):
    """The parts of the page that show an answer: as components, or what these show.

    Attributes:
        notices: what was left out, and how candidates were scored.
        ranking: the candidates with their scores.
        compared: references and infills.
        signature: of the scores.
        question: that was answered.
        paper: the button that adds the paper's MARS.
    """

    notices: Any = ""
    ranking: Any = WAITING
    compared: Any = ""
    signature: Any = ""
    question: Any = None
    paper: Any = None


@contextmanager
def friendly(*, html: bool = True) -> Iterator[None]:
    """Turn a refusal into its message, for the page escaped, and any other exception into one without details."""
    try:
        yield
    except Refused as error:
        message = escape(str(error)) if html else str(error)
        raise gr.Error(message, title="Please check", print_exception=False) from None
    except Exception as error:
        _log.error("Unexpected: %s", place_of(error))
        message = "Something went wrong here. Please try again, perhaps with other texts."
        if isinstance(error, ModelUnavailableError):
            message = "The models cannot be loaded right now. Please try again later."
        raise gr.Error(message, print_exception=False) from None


class Handlers:
    """The functions behind the page and the API."""

    def __init__(self, answerer: Answerer, limit: WorkLimit | None = None) -> None:
        self._answerer = answerer
        self._limit = limit or WorkLimit()

    def page(self, request: gr.Request, *values: Any) -> Page:
        """Score what is on the page, whose values come in the order of :data:`VALUES`."""
        with friendly():
            given = dict(zip(VALUES, values, strict=True))
            context, *texts = (given.pop(name) for name in ("context", *LIMITS))
            question = read_question(context, *texts, settings=given)
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

        Without references the context alone counts, and there are no other metrics. The settings are "task", which
        says what the context is ("text", the default; "dialogue", one turn per line; or "data"),
        "reference_aggregation" and "use_context", as of the package, and "paper": true to compute the paper's
        MARS, too. Samples are texts that others than the candidates' systems wrote for the context, such as a
        language model. Blank texts are left out; "index" counts the rest from 0.
        """
        with friendly(html=False):
            question = read_question(context, references, candidates, samples, settings=settings)
            return self._answer(request, question).to_dict()

    def arrive(self, example: Question) -> Page:
        """Return what a visitor sees on arrival: the answer to an example, if it is ready."""
        prepared = self._answerer.prepared(example)
        return show(prepared) if prepared else Page()

    def paper(self, request: gr.Request, question: Question) -> Page:
        """Score what is shown already by the paper's MARS, too."""
        with friendly():
            return show(self._answer(request, replace(question, paper=True)))

    def _answer(self, request: gr.Request | None, question: Question) -> Answer:
        if prepared := self._answerer.prepared(question):
            return prepared
        with self._limit.count(request) as progress:
            return self._answerer.answer(question, progress)


def show(answer: Answer) -> Page:
    """Show an answer on the page."""
    pages = notices_page(answer.notices), ranking_page(answer), compared_page(answer)
    addable = bool(answer.question.references) and not answer.question.paper
    return Page(*pages, answer.signature, answer.question, gr.update(visible=addable))


# Layout


def build(handlers: Handlers, examples: list[PageExample]) -> gr.Blocks:
    """Make the page, with its queue."""
    with gr.Blocks(title="MARS", analytics_enabled=False) as page:
        gr.HTML(_HEAD)
        with gr.Row(elem_id="mars-examples"):
            buttons = [gr.Button(example.title, size="sm") for example in examples]
        lesson = gr.HTML(elem_id="mars-lesson")
        with gr.Row(equal_height=False):
            with gr.Column(scale=5, elem_id="mars-inputs"):
                inputs = _inputs()
                button = gr.Button("Score", variant="primary", elem_id="mars-score")
            with gr.Column(scale=6):
                ranking = _ranking()
        outputs = _details(ranking)
        samples, *settings = _controls()
        inputs, values = [*inputs, samples], [*inputs, samples, *settings]
        scoring: dict[str, Any] = {"show_progress_on": outputs.ranking, **_LIMITED, **_PRIVATE}
        button.click(handlers.page, values, list(outputs), **scoring)
        outputs.paper.click(handlers.paper, outputs.question, list(outputs), **scoring)
        for example, chosen in zip(examples, buttons, strict=True):
            filled = chosen.click(partial(_fill, example), None, [lesson, *inputs], queue=False, **_PRIVATE)
            filled.then(handlers.page, values, list(outputs), **scoring)
        if examples:
            arrive = partial(_arrive, handlers, examples[0])
            page.load(arrive, None, [lesson, *inputs, *outputs], show_progress="hidden", **_PRIVATE)
        gr.api(handlers.api, api_name="score", **_LIMITED)
    page.queue(api_open=False)
    page._queue = FairQueue(page)
    return page


def _inputs() -> list[Any]:
    """Lay out context, task, references and candidates; return them in this order."""
    return [
        _texts(
            "Context", 2, 8, "What came before: a dialogue (one turn per line), a story, an article, a question"
        ),
        gr.Radio(
            [(task.capitalize(), task) for task in TASKS],
            value=DEFAULTS["task"],
            label="The context is",
            elem_id="mars-task",
        ),
        _texts(
            "References, one per line",
            1,
            6,
            "Good texts, written by people. Without any, the context alone counts",
        ),
        _texts("Candidates, one per line", 3, 14, "Texts to score"),
    ]


def _texts(label: str, lines: int, max_lines: int, hint: str) -> Any:
    name = label.split(",")[0].lower()
    return gr.Textbox(label=label, lines=lines, max_lines=max_lines, placeholder=hint, elem_id=f"mars-{name}")


def _ranking() -> Page:
    """Lay out the parts of an answer that stand beside the inputs."""
    return Page(
        notices=gr.HTML(elem_id="mars-notices"),
        ranking=gr.HTML(WAITING, elem_id="mars-ranking"),
        paper=gr.Button("Add the paper's MARS (up to a minute)", visible=False, elem_id="mars-paper"),
    )


def _details(ranking: Page) -> Page:
    """Lay out the other parts of an answer; return all of them."""
    with gr.Accordion("What the candidates were compared with", elem_id="mars-details"):
        compared = gr.HTML(elem_id="mars-compared")
        signature = gr.Textbox(
            label="Signature, to quote beside the scores",
            lines=2,
            interactive=False,
            buttons=["copy"],
            elem_id="mars-signature",
        )
    return ranking._replace(compared=compared, signature=signature, question=gr.State())


def _controls() -> list[Any]:
    """Lay out samples and settings; return them in this order."""
    with gr.Accordion("Samples and settings", open=False, elem_id="mars-settings"):
        samples = _texts("Samples, one per line", 1, 6, "What a good language model writes for this context")
        with gr.Row():
            aggregation = gr.Radio(
                [("Best", "max"), ("Mean", "mean")],
                value=DEFAULTS["reference_aggregation"],
                label="With several references",
                info="The best of them counts, or their mean.",
            )
            use_context = gr.Checkbox(
                DEFAULTS["use_context"], label="Use the context", info="Off: only the references count."
            )
        gr.HTML(
            f'<p class="mars-hint">Models: preset “{PRESET}”. Scores with different signatures cannot be '
            "compared.</p>"
        )
    return [samples, aggregation, use_context]


def _fill(example: PageExample) -> list[str]:
    question = example.question
    texts = map("\n".join, (question.references, question.candidates, question.samples))
    return [example.lesson, question.context, question.task, *texts]


def _arrive(handlers: Handlers, example: PageExample) -> list[Any]:
    return [*_fill(example), *handlers.arrive(example.question)]


def theme() -> Any:
    """Make the theme of gradio."""
    shades = (
        "#fdf5f1 #fae6dd #f3c9b8 #e8a288 #d97953 #c2562f #a84522 #89371c #6b2c18 #4f2214 #31140b"  # from 50 to 950
    )
    return gr.themes.Base(
        primary_hue=gr.themes.Color(*shades.split(), name="rust"),
        secondary_hue="stone",
        neutral_hue="stone",
        font=("Inter", "ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Helvetica", "sans-serif"),
        font_mono=("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"),
    ).set(
        body_background_fill="#faf8f5",
        body_text_color_subdued="*neutral_600",
        block_title_text_weight="600",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
    )
