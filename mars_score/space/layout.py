"""The layout of the page, and the events that call the handlers."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from mars_score.settings.fields import TASKS
from mars_score.space.choices import BY_FORM, PRESET, Choices
from mars_score.space.examples import Example
from mars_score.space.handlers import CONTROLS, PRIVATE, Handlers
from mars_score.space.inputs import Inquiry, Question
from mars_score.space.pages import WAITING

_PAPER = "https://aclanthology.org/2021.acl-long.521"
_HEAD = f"""<div class="mars-head"><h1><em>MARS</em> scores text in its context</h1>
<p>A good answer need not repeat the reference. <span>MARS plus also reads the context; beside it are the MARS of
the paper, BLEU and ROUGE-L.</span> <a href="{_PAPER}" target="_blank" rel="noopener">Paper</a></p></div>"""
_MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model", **PRIVATE}
_QUERY = "() => window.location.search"
# The server knows the query of a link, the browser the address of the page.
_ADDRESS = "(link) => (link.startsWith('?') ? window.location.origin + window.location.pathname + link : link)"
_SHOW_ADDRESS = "(link) => window.history.replaceState(null, '', link || window.location.pathname)"


def build(handlers: Handlers, examples: list[Example]) -> gr.Blocks:
    """The page, with its queue."""
    with gr.Blocks(title="MARS", analytics_enabled=False) as page:
        gr.HTML(_HEAD)
        _compare(page, handlers, examples)
        gr.api(handlers.api, api_name="score", concurrency_limit=1, concurrency_id="model")
    page.queue(max_size=64, api_open=False, default_concurrency_limit=4)
    return page


def _compare(page: gr.Blocks, handlers: Handlers, examples: list[Example]) -> None:
    """All of the page but its head."""
    with gr.Row(elem_id="mars-examples"):
        buttons = [gr.Button(example.title, size="sm") for example in examples]
    lesson = gr.HTML(elem_id="mars-lesson")
    with gr.Row(equal_height=False):
        with gr.Column(scale=5, elem_id="mars-inputs"):
            inputs = _texts()
            button = gr.Button("Score", variant="primary", elem_id="mars-score")
        with gr.Column(scale=6):
            notices = gr.HTML(elem_id="mars-notices")
            ranking = gr.HTML(WAITING, elem_id="mars-ranking")
            paper = gr.Button("Add the paper's MARS (up to a minute)", visible=False, elem_id="mars-paper")
    inquiry = gr.State()
    link = gr.Textbox(
        label="Link to these texts, settings and scores",
        interactive=False,
        buttons=["copy"],
        max_lines=1,
        elem_id="mars-link",
    )
    fool, fooled = _fool(handlers, inquiry)
    with gr.Accordion("What the candidates were compared with", elem_id="mars-details"):
        compared = gr.HTML(elem_id="mars-compared")
        signature = gr.Textbox(
            label="Signature, to quote beside the scores",
            interactive=False,
            buttons=["copy"],
            lines=2,
            elem_id="mars-signature",
        )
    with gr.Accordion("Settings", open=False, elem_id="mars-settings"):
        settings = _settings()
    outputs = [notices, ranking, compared, signature, link, inquiry, paper, fool, fooled]
    values = [*inputs, *settings.values()]
    scoring: dict[str, Any] = {"show_progress_on": ranking, **_MODEL}
    scored = [button.click(handlers.page, values, outputs, **scoring)]
    scored.append(paper.click(handlers.paper, inquiry, outputs, **scoring))
    for example, chosen in zip(examples, buttons, strict=True):
        filled = chosen.click(partial(_fill, example), None, [lesson, *inputs], queue=False, **PRIVATE)
        scored.append(filled.then(handlers.page, values, outputs, **scoring))
    for event in scored:
        event.success(None, link, link, js=_ADDRESS, **PRIVATE).then(None, link, None, js=_SHOW_ADDRESS, **PRIVATE)
    if examples:
        linked, query = gr.State(), gr.Textbox(visible=False)
        arrive = partial(_arrive, handlers, examples[0])
        arrived = [linked, lesson, *inputs, *settings.values(), *outputs]
        for event in (
            page.load(arrive, query, arrived, js=_QUERY, show_progress="hidden", **PRIVATE),
            linked.change(handlers.follow, linked, outputs, **scoring),
        ):
            event.success(None, link, link, js=_ADDRESS, **PRIVATE)


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


def _settings() -> dict[str, Any]:
    """The controls, by the names of the settings."""
    with gr.Row():
        task = gr.Radio(
            [("By the form of the context", BY_FORM), *((name.capitalize(), name) for name in TASKS)],
            value=BY_FORM,
            label="Task",
            info="What a candidate is to its context; the weights of the score depend on it.",
            elem_id="mars-task",
        )
    with gr.Row():
        aggregation = gr.Radio(
            [("Best", "max"), ("Mean", "mean")],
            value=Choices.reference_aggregation,
            label="With several references",
            info="The best of them counts, or their mean.",
        )
        use_context = gr.Checkbox(
            Choices.use_context, label="Use the context", info="Off: only the references count."
        )
    gr.HTML(
        f'<p class="mars-hint">Models: preset “{PRESET}”. Scores with different signatures cannot be compared.</p>'
    )
    return {"task": task, "reference_aggregation": aggregation, "use_context": use_context}


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
    return [linked, _lesson(lesson), *_fields(inquiry.question), *control_values(inquiry), *page]


def control_values(inquiry: Inquiry) -> list[Any]:
    """What the controls of the settings show."""
    values = [getattr(inquiry.choices, name) for name in CONTROLS]
    return [inquiry.choices.task or BY_FORM, *values[1:]]


def _lesson(text: str) -> str:
    return f'<p class="mars-lesson">{text}</p>' if text else ""


def _fields(question: Question) -> list[str]:
    return [question.context, "\n".join(question.references), "\n".join(question.candidates)]
