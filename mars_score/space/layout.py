"""The layout of the page, and the events that call the handlers."""

from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from mars_score.settings.fields import TASKS
from mars_score.space.handlers import CONTROLS, PRIVATE, Handlers
from mars_score.space.inputs import BY_FORM, PRESET, Choices, Example, Inquiry, Question
from mars_score.space.pages import WAITING

CSS = Path(__file__).with_name("look.css")
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
    link = _copied("Link to these texts, settings and scores", "mars-link", max_lines=1)
    with gr.Accordion("What the candidates were compared with", elem_id="mars-details"):
        compared = gr.HTML(elem_id="mars-compared")
        signature = _copied("Signature, to quote beside the scores", "mars-signature", lines=2)
    with gr.Accordion("Settings", open=False, elem_id="mars-settings"):
        settings = _settings()
    outputs = [notices, ranking, compared, signature, link, inquiry, paper]
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
    """Context, references, candidates and samples."""
    fields = (
        ("Context", 2, 8, "What came before: a dialogue (one turn per line), a story, an article, a question"),
        ("References, one per line", 1, 6, "Good texts, written by people. Without any, the context alone counts"),
        ("Candidates, one per line", 3, 14, "Texts to score"),
        ("Samples, one per line", 1, 6, "Optional: what a good language model writes for this context"),
    )
    return [
        gr.Textbox(
            label=label,
            lines=lines,
            max_lines=most,
            placeholder=hint,
            elem_id=f"mars-{label.split(',')[0].lower()}",
        )
        for label, lines, most, hint in fields
    ]


def _copied(label: str, elem_id: str, **lines: int) -> gr.Textbox:
    """A text to be copied from the page."""
    return gr.Textbox(label=label, interactive=False, buttons=["copy"], elem_id=elem_id, **lines)


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
    return [question.context, *map("\n".join, (question.references, question.candidates, question.samples))]


def theme() -> Any:
    """The theme of gradio."""
    shades = (
        "#fdf5f1 #fae6dd #f3c9b8 #e8a288 #d97953 #c2562f #a84522 #89371c #6b2c18 #4f2214 #31140b"  # from 50 to 950
    )
    sans = ("Inter", "ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Helvetica", "Arial", "sans-serif")
    return gr.themes.Base(
        primary_hue=gr.themes.Color(*shades.split(), name="rust"),
        secondary_hue=gr.themes.colors.stone,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_md,
        text_size=gr.themes.sizes.text_md,
        font=sans,
        font_mono=("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"),
    ).set(
        body_background_fill="#faf8f5",
        body_text_color_subdued="*neutral_600",
        block_info_text_color="*neutral_600",
        block_border_width="1px",
        block_label_background_fill="transparent",
        block_label_border_width="0px",
        block_label_text_color="*neutral_600",
        block_title_text_weight="600",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_text_color="white",
        button_primary_background_fill_dark="*primary_500",
        slider_color="*primary_500",
    )
