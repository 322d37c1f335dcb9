"""Lay out the page, and handle its buttons and the API."""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import gradio as gr
from gradio.components import Component
from gradio.events import Dependency

from mars_score.errors import ModelUnavailableError
from mars_score.rows import TASKS
from space.answer import Answer, Answerer
from space.limits import WAITING_CALLS, Refused, WorkLimit, place_of
from space.pages import (
    OUTDATED,
    SCORING,
    WAITING,
    compared_page,
    hint_page,
    notices_page,
    problem_page,
    ranking_page,
)
from space.questions import (
    CHOICES,
    DEFAULTS,
    LIMITS,
    SCORER_SETTINGS,
    SEPARATOR,
    PageExample,
    Passages,
    Question,
    joined,
    read_question,
)

CSS = Path(__file__).with_name("look.css")
SCRIPT = Path(__file__).with_name("page.js")
_PAPER = "https://aclanthology.org/2021.acl-long.521"
_HEAD = f"""<div class="mars-head"><h1><em>MARS</em> scores text in its context</h1>
<p>A good answer need not repeat the reference. <span>MARS plus also reads the context; beside it are the MARS of
the paper, BLEU, ROUGE-L and BERTScore.</span> <a href="{_PAPER}" target="_blank" rel="noopener">Paper</a></p>
</div>"""
_Options: TypeAlias = dict[str, Any]
# Options of gradio's events. All events that run models share one queue, in which one runs at a time.
_MODELS: _Options = {"concurrency_limit": 1, "concurrency_id": "model"}
_PAGE: _Options = {"show_progress": "hidden", "api_visibility": "private"}  # The page shows its own progress.
_AT_ONCE: _Options = {"queue": False, **_PAGE}
_SCORING: _Options = {**_MODELS, **_PAGE}
# The inputs of the page, in its order.
VALUES = ("context", "task", "question", "references", "candidates", "samples", *SCORER_SETTINGS, "preset")
PAGE_TASKS = (*TASKS, "passages")  # The package scores passages as a summary.
_ADD_PAPER = "Add the paper's MARS (up to a minute)"
_PAPER_OFFERED = gr.update(visible=True, value=_ADD_PAPER, interactive=True)
_PAPER_COMPUTING = gr.update(value="Computing the paper's MARS, up to a minute …", interactive=False)
_HIDDEN = gr.update(visible=False)
# JavaScript that gives the inputs a ticket, and that goes on only if the models are needed.
_ASK = "(_, ...values) => mars.ask(values)"
_FAIL_UNLESS_SCORING = f"ranking => {{ if (ranking !== {json.dumps(SCORING)}) throw Error('answered'); }}"
_UNANSWERED = "The Space did not answer. Please press “Score” again in a moment."
_log = logging.getLogger(__name__)


class Page(NamedTuple):
    """The parts of the page that show an answer: gradio's components, or their values."""

    notices: Any = ""  # what was left out, and how candidates were scored
    ranking: Any = WAITING  # the candidates with their scores
    compared: Any = ""  # references and infills of the paper's MARS
    signature: Any = ""  # the signature of the scores
    paper: Any = _HIDDEN  # the button that adds the paper's MARS
    asked: Any = None  # the question that was answered, which stays on the server

    @property
    def shown(self) -> list[Any]:
        """Return all parts but the last, which stays on the server."""
        return list(self[:-1])


class Asked(NamedTuple):
    """A question, and the number that the browser gave to its inputs."""

    question: Question
    ticket: int = 0


def message_of(error: Exception) -> str:
    """Return the message of a refusal. Log any other exception, and return a message without details."""
    if isinstance(error, Refused):
        return str(error)
    _log.error("Unexpected: %s", place_of(error))
    if isinstance(error, ModelUnavailableError):
        return "The models cannot be loaded right now. Please try again later."
    return "Something went wrong here. Please try again, perhaps with other texts."


class Handlers:
    """The functions behind the page and the API."""

    def __init__(self, answerer: Answerer, limit: WorkLimit | None = None) -> None:
        self._answerer = answerer
        self._limit = limit or WorkLimit()

    def at_once(self, request: gr.Request, ticket: int | None, *values: object) -> Page:
        """Show what needs no model: a refusal, a prepared answer, or else that the inputs are being scored.

        ``ticket`` is the number that the browser gave to the inputs, ``values`` in the order of :data:`VALUES`.
        """
        try:
            question = _read(values)
            if prepared := self._answerer.prepared(question):
                return show(prepared, ticket)
            self._limit.check(request)
            return Page(ranking=SCORING)
        except Exception as error:
            return Page(ranking=problem_page(message_of(error)))

    def page(self, request: gr.Request, ticket: int | None, *values: object) -> Page:
        """Score the inputs of the page, or show why they are refused, as :meth:`at_once` does."""
        try:
            return show(self._answer(request, _read(values)), ticket)
        except Exception as error:
            return Page(ranking=problem_page(message_of(error)))

    def api(
        self,
        context: str | dict[str, Any],
        references: list[str],
        candidates: list[str],
        settings: dict[str, Any] | None = None,
        samples: list[str] | None = None,
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Score candidates against references in a context, best first, with BLEU, ROUGE-L and BERTScore.

        The context is a text, or {"passages": [...]}, perhaps with a "question" that they were retrieved for.
        Without references the context alone counts, and there are no other metrics. The settings are "task",
        which says what the context is ("text", the default; "summary", a text to summarise, the default for
        passages; "dialogue", one turn per line; or "data"), "preset", which names the models, the package's
        "reference_aggregation" and "use_context", and "paper": true adds the paper's MARS. Samples are texts that
        a language model or another system wrote for the context. Blank texts are left out; "index" counts the
        others from 0. "contradicted" has the sentences of a candidate that are contradicted, with "probability",
        "premise", the text that contradicts them, and "source", "context" or "reference"; "supported" is the mean
        probability that the context of a summary says what its sentences say, 0 for a contradicted one, else
        null, and "unsupported" has those that it does not say.
        """
        try:
            question = read_question(context, references, candidates, samples, settings=settings)
            return self._answer(request, question).to_dict()
        except Exception as error:
            raise gr.Error(message_of(error), print_exception=False) from None

    def arrive(self, example: Question) -> Page:
        """Show the answer to an example to a new visitor, if it is prepared."""
        prepared = self._answerer.prepared(example)
        return show(prepared) if prepared else Page()

    def paper(self, request: gr.Request, asked: Asked) -> Page:
        """Add the paper's MARS to the answer that is shown, or warn why it cannot be added."""
        try:
            return show(self._answer(request, replace(asked.question, paper=True)), asked.ticket)
        except Exception as error:
            gr.Warning(escape(message_of(error)), title="The paper's MARS")
            unchanged = dict.fromkeys(Page._fields, gr.skip())
            return Page(**(unchanged | {"paper": _PAPER_OFFERED}))

    def _answer(self, request: gr.Request | None, question: Question) -> Answer:
        if prepared := self._answerer.prepared(question):
            return prepared
        with self._limit.count(request) as progress:
            return self._answerer.answer(question, progress)


def show(answer: Answer, ticket: int | None = None) -> Page:
    """Show an answer on the page."""
    asked = Asked(answer.question, ticket or 0)
    pages = notices_page(answer.notices), ranking_page(answer, asked.ticket), compared_page(answer)
    addable = bool(answer.question.references) and not answer.question.paper
    return Page(*pages, answer.signature, _PAPER_OFFERED if addable else _HIDDEN, asked)


def _read(values: Sequence[object]) -> Question:
    """Read the inputs of the page, in the order of :data:`VALUES`, by :func:`read_question`."""
    settings = dict(zip(VALUES, values, strict=True))
    context, question, *texts = (settings.pop(name) for name in ("context", "question", *LIMITS))
    if settings["task"] == "passages":
        context = {"passages": context, "question": question}
        del settings["task"]
    return read_question(context, *texts, settings=settings)


# Layout


def build(handlers: Handlers, examples: list[PageExample]) -> gr.Blocks:
    """Make the page, with its queue."""
    with gr.Blocks(title="MARS", analytics_enabled=False) as page:
        gr.HTML(_HEAD)
        with gr.Row(elem_id="mars-examples"):
            buttons = [gr.Button(example.title, size="sm") for example in examples]
        hint = gr.HTML(elem_id="mars-example-hint")
        with gr.Row(equal_height=False):
            with gr.Column(scale=5, elem_id="mars-inputs"):
                values = [*_inputs(), *_settings()]
                button = gr.Button("Score", variant="primary", elem_id="mars-score")
            with gr.Column(scale=6, elem_id="mars-outputs"):
                outputs = _outputs()
        filled = values[:-1]  # An example does not change the preset.
        emptied = Page(ranking=SCORING).shown
        starts = [
            button.click(None, None, outputs.shown, js=_returning(*emptied, first="mars.look()"), **_AT_ONCE)
        ]
        for example, button in zip(examples, buttons, strict=True):
            shown = _returning(*_values(example), *emptied)
            starts.append(button.click(None, None, [*filled, *outputs.shown], js=shown, **_AT_ONCE))
        _score_after(starts, handlers, values, outputs)
        gr.on([part.change for part in values], None, values, hint, js=_change(examples), **_AT_ONCE)
        if examples:
            arrived = page.load(partial(_arrive, handlers, examples[0]), None, [*filled, *outputs], **_AT_ONCE)
            arrived.then(None, values, None, js="(...values) => mars.arrive(values)", **_AT_ONCE)
        gr.api(handlers.api, api_name="score", **_MODELS)
    return page.queue(max_size=WAITING_CALLS, api_open=False)


def _score_after(starts: Sequence[Dependency], handlers: Handlers, values: list[Component], outputs: Page) -> None:
    """Score after each of the events ``starts``, and add the paper's MARS after a click on its button.

    What needs no model is shown at once and does not wait in the queue.
    """
    ticket = gr.Number(visible=False, precision=0)
    sent: _Options = {"inputs": [ticket, *values], "outputs": list(outputs), "js": _ASK}
    for start in starts:
        at_once = start.then(handlers.at_once, **sent, **_AT_ONCE)
        unanswered = at_once.success(None, outputs.ranking, None, js=_FAIL_UNLESS_SCORING, **_AT_ONCE)
        scored = unanswered.success(handlers.page, **sent, **_SCORING, trigger_mode="multiple")
        for event in (at_once, scored):
            event.failure(None, None, outputs.ranking, js=_returning(problem_page(_UNANSWERED)), **_AT_ONCE)
    clicked = outputs.paper.click(None, None, outputs.paper, js=_returning(_PAPER_COMPUTING), **_AT_ONCE)
    added = clicked.then(handlers.paper, outputs.asked, list(outputs), **_SCORING)
    added.failure(None, None, outputs.paper, js=_returning(_PAPER_OFFERED), **_AT_ONCE)


def _returning(*values: object, first: str = "") -> str:
    """Return a JavaScript function that runs the statement ``first`` and returns values for the outputs."""
    return f"() => {{ {first}; return {json.dumps(values)}; }}"


def _change(examples: Sequence[PageExample]) -> str:
    """Return a JavaScript function for changed inputs: it marks outdated results and returns an example's hint."""
    hints = {
        json.dumps(_values(example), ensure_ascii=False, separators=(",", ":")): hint_page(example.hint)
        for example in examples
    }
    return f"(...values) => mars.change({json.dumps(hints)}, values)"


def _inputs() -> list[Component]:
    """Lay out context, task, question, references and candidates, and return them in this order."""
    return [
        _box("Context", 2, 8, "What came before: a dialogue (one turn per line), a story, an article, a question"),
        gr.Radio(
            [(task.capitalize(), task) for task in PAGE_TASKS],
            value=DEFAULTS["task"],
            label="Task",
            info="What the context is: a text, a dialogue (one turn per line) or data; the text to summarise; or "
            "passages (one per line) that answer a question.",
            elem_id="mars-task",
        ),
        _box("Question", 1, 3, "What the passages were retrieved for. It is no evidence"),
        _box(
            "References, one per line",
            1,
            6,
            "Good texts, written by people. Without any, the context alone counts",
        ),
        _box(f"Candidates, one per line or {SEPARATOR} between", 3, 14, "Texts to score"),
    ]


def _box(label: str, lines: int, max_lines: int, hint: str) -> gr.Textbox:
    name = label.split(",")[0].lower()
    sizes = {"lines": lines, "max_lines": max_lines}
    return gr.Textbox(label=label, placeholder=hint, elem_id=f"mars-{name}", autoscroll=False, **sizes)


def _settings() -> list[Component]:
    """Lay out samples and settings, and return them in the order of :data:`VALUES`."""
    with gr.Accordion("Samples and settings", open=False, elem_id="mars-settings"):
        samples = _box("Samples, one per line", 1, 6, "What a good language model writes for this context")
        aggregation = gr.Radio(
            [("Best", "max"), ("Mean", "mean")],
            value=DEFAULTS["reference_aggregation"],
            label="With several references",
            info="The best of them counts, or their mean.",
        )
        use_context = gr.Checkbox(
            DEFAULTS["use_context"], label="Use the context", info="Off: only the references count."
        )
        preset = gr.Radio(
            list(CHOICES),
            value=DEFAULTS["preset"],
            label="Models",
            info="Scores of different models cannot be compared.",
            elem_id="mars-preset",
        )
    return [samples, aggregation, use_context, preset]


def _outputs() -> Page:
    """Lay out the parts of an answer."""
    gr.HTML(OUTDATED, elem_id="mars-outdated")
    return Page(
        notices=gr.HTML(elem_id="mars-notices"),
        ranking=gr.HTML(WAITING, elem_id="mars-ranking"),
        paper=gr.Button(_ADD_PAPER, visible=False, elem_id="mars-paper"),
        compared=gr.HTML(elem_id="mars-compared"),
        signature=gr.Textbox(
            label="Signature, to quote beside the scores",
            placeholder="follows with the scores",
            lines=2,
            interactive=False,
            buttons=["copy"],
            elem_id="mars-signature",
        ),
        asked=gr.State(),
    )


def _arrive(handlers: Handlers, example: PageExample) -> list[object]:
    return [*_values(example), *handlers.arrive(example.question)]


def _values(example: PageExample) -> list[object]:
    """Return an example's values in the order of :data:`VALUES`, without the preset."""
    question = example.question
    values = {**vars(question), "question": ""}
    values |= {name: joined(values[name]) for name in LIMITS}
    if isinstance(question.context, Passages):
        texts = joined(question.context.texts)
        values |= {"context": texts, "task": "passages", "question": question.context.question}
    return [values[name] for name in VALUES[:-1]]


def theme() -> gr.themes.Base:
    """Make the theme of the page."""
    # Shades 50 to 950, as gradio numbers them.
    shades = "#fdf5f1 #fae6dd #f3c9b8 #e8a288 #d97953 #c2562f #a84522 #89371c #6b2c18 #4f2214 #31140b"
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
        block_title_text_color="*neutral_700",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_400",
        input_placeholder_color="*neutral_600",
        input_placeholder_color_dark="*neutral_300",
        link_text_color_dark="*neutral_300",
        link_text_color_hover_dark="*neutral_100",
        link_text_color_visited_dark="*neutral_300",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
    )
