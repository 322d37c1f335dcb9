"""The layout of the page, and the events that call the handlers."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from mars_score.space.controls import PRIVATE, settings_controls, values_of
from mars_score.space.examples import Example
from mars_score.space.file_tab import file_tab, signature_box
from mars_score.space.handlers import Handlers
from mars_score.space.inputs import Question
from mars_score.space.look import MASK_COLOUR
from mars_score.space.pages import WAITING

_PAPER = "https://aclanthology.org/2021.acl-long.521"
_HEAD = f"""<div class="mars-head"><h1><em>MARS</em> scores text in its context</h1>
<p>A good answer need not repeat the reference. <span>MARS also compares it with its context, and with what a
language model would write.</span> <a href="{_PAPER}" target="_blank" rel="noopener">Paper</a></p></div>"""
_MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model", **PRIVATE}
_QUERY = "() => window.location.search"
# The server knows the query of a link, the browser the address of the page.
_ADDRESS = "(link) => (link.startsWith('?') ? window.location.origin + window.location.pathname + link : link)"
_SHOW_ADDRESS = "(link) => window.history.replaceState(null, '', link || window.location.pathname)"


def build(handlers: Handlers, examples: list[Example]) -> gr.Blocks:
    """The page, with its queue."""
    with gr.Blocks(title="MARS", analytics_enabled=False, delete_cache=(600, 3600)) as page:
        gr.HTML(_HEAD)
        with gr.Tab("Compare candidates"):
            settings = _compare(page, handlers, examples)
        with gr.Tab("Score a file"):
            file_tab(handlers, settings)
        gr.api(handlers.api, api_name="score", concurrency_limit=1, concurrency_id="model")
    page.queue(max_size=64, api_open=False, default_concurrency_limit=4)
    return page


def _compare(page: gr.Blocks, handlers: Handlers, examples: list[Example]) -> dict[str, Any]:
    """The tab for one context; returns the settings, which count for files, too."""
    with gr.Row(elem_id="mars-examples"):
        buttons = [gr.Button(one.title, size="sm") for one in examples]
    lesson = gr.HTML(elem_id="mars-lesson")
    with gr.Row(equal_height=False):
        with gr.Column(scale=5, elem_id="mars-inputs"):
            inputs = _texts()
            button = gr.Button("Score", variant="primary", elem_id="mars-score")
        with gr.Column(scale=6):
            notices = gr.HTML(elem_id="mars-notices")
            ranking = gr.HTML(WAITING, elem_id="mars-ranking")
    inquiry = gr.State()
    link, card = _share(handlers, inquiry)
    fool, fooled = _fool(handlers, inquiry)
    with gr.Accordion("What MARS did", elem_id="mars-details"):
        compared = gr.HTML(elem_id="mars-compared")
        masked = gr.HighlightedText(
            label="Masked words, by the share of words masked",
            color_map={"masked": MASK_COLOUR},
            show_inline_category=False,
            visible=False,
            elem_id="mars-masked",
        )
        signature = signature_box("mars-signature")
    with gr.Accordion("Settings", open=False, elem_id="mars-settings"):
        settings = settings_controls()
    outputs = [notices, ranking, masked, compared, signature, link, inquiry, fool, fooled, card]
    values = [*inputs, *settings.values()]
    scored = [button.click(handlers.page, values, outputs, show_progress_on=ranking, **_MODEL)]
    for example, one in zip(examples, buttons, strict=True):
        filled = one.click(partial(_fill, example), None, [lesson, *inputs], queue=False, **PRIVATE)
        scored.append(filled.then(handlers.page, values, outputs, show_progress_on=ranking, **_MODEL))
    for event in scored:
        event.success(None, link, link, js=_ADDRESS, **PRIVATE).then(None, link, None, js=_SHOW_ADDRESS, **PRIVATE)
    if examples:
        linked, query = gr.State(), gr.Textbox(visible=False)
        arrive = partial(_arrive, handlers, examples[0])
        arrived = [linked, lesson, *inputs, *settings.values(), *outputs]
        page.load(arrive, query, arrived, js=_QUERY, show_progress="hidden", **PRIVATE).then(
            None, link, link, js=_ADDRESS, **PRIVATE
        )
        linked.change(handlers.follow, linked, outputs, show_progress_on=ranking, **_MODEL).success(
            None, link, link, js=_ADDRESS, **PRIVATE
        )
    return settings


def _texts() -> list[Any]:
    """Context, references and candidates."""
    return [
        gr.Textbox(
            label="Context",
            lines=2,
            max_lines=8,
            placeholder="What came before: a dialogue (one turn per line), a story, an article, a question",
            elem_id="mars-context",
        ),
        gr.Textbox(
            label="References, one per line",
            lines=1,
            max_lines=6,
            placeholder="Good texts, written by people. Without any, the context alone counts",
            elem_id="mars-references",
        ),
        gr.Textbox(
            label="Candidates, one per line",
            lines=3,
            max_lines=14,
            placeholder="Texts to score",
            elem_id="mars-candidates",
        ),
    ]


def _share(handlers: Handlers, inquiry: gr.State) -> tuple[Any, Any]:
    """The link and the image of what was scored."""
    with gr.Row(elem_id="mars-share", equal_height=True):
        link = gr.Textbox(
            label="Link to these texts, settings and scores",
            interactive=False,
            buttons=["copy"],
            lines=1,
            max_lines=1,
            scale=4,
            elem_id="mars-link",
        )
        draw = gr.Button("Make an image to share", scale=1, min_width=200, elem_id="mars-draw")
    card = gr.Image(
        label="Result card",
        format="png",
        visible=False,
        interactive=False,
        buttons=["download", "fullscreen"],
        elem_id="mars-card",
    )
    draw.click(handlers.card, inquiry, card, show_progress_on=draw, **_MODEL)
    return link, card


def _fool(handlers: Handlers, inquiry: gr.State) -> tuple[Any, Any]:
    """A candidate to be changed, and the scores of its changed versions."""
    with gr.Accordion("Try to fool it", elem_id="mars-fool"):
        with gr.Row(equal_height=True):
            candidate = gr.Dropdown(
                [], label="Change this candidate: shuffle, negate, another number, copy the context", scale=4
            )
            button = gr.Button("Try to fool it", scale=1, min_width=200, elem_id="mars-try")
        fooled = gr.HTML(elem_id="mars-fooled")
    button.click(handlers.fool, [inquiry, candidate], fooled, show_progress_on=fooled, **_MODEL)
    return candidate, fooled


def _fill(example: Example) -> list[str]:
    return [_lesson(example.lesson), *_fields(example.question)]


def _arrive(handlers: Handlers, example: Example, query: str) -> list[Any]:
    linked, lesson, inquiry, page = handlers.arrive(query, example)
    return [linked, _lesson(lesson), *_fields(inquiry.question), *values_of(inquiry.choices), *page]


def _lesson(text: str) -> str:
    return f'<p class="mars-lesson">{text}</p>' if text else ""


def _fields(question: Question) -> list[str]:
    return [question.context, "\n".join(question.references), "\n".join(question.candidates)]
