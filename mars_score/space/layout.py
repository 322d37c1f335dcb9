"""The layout of the page, and the events that call the handlers."""

from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from mars_score.settings.options import TASKS
from mars_score.space.handlers import BY_FORM, Handlers
from mars_score.space.pages import WAITING
from mars_score.space.questions import DEFAULTS, PRESET, Example

CSS = Path(__file__).with_name("look.css")
_PAPER = "https://aclanthology.org/2021.acl-long.521"
_HEAD = f"""<div class="mars-head"><h1><em>MARS</em> scores text in its context</h1>
<p>A good answer need not repeat the reference. <span>MARS plus also reads the context; beside it are the MARS of
the paper, BLEU and ROUGE-L.</span> <a href="{_PAPER}" target="_blank" rel="noopener">Paper</a></p></div>"""
_PRIVATE: dict[str, Any] = {"api_visibility": "private"}  # of events: not a part of the API
_MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}


def build(handlers: Handlers, examples: list[Example]) -> gr.Blocks:
    """The page, with its queue."""
    with gr.Blocks(title="MARS", analytics_enabled=False) as page:
        gr.HTML(_HEAD)
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
        question = gr.State()  # that was answered
        with gr.Accordion("What the candidates were compared with", elem_id="mars-details"):
            compared = gr.HTML(elem_id="mars-compared")
            signature = gr.Textbox(
                label="Signature, to quote beside the scores",
                lines=2,
                interactive=False,
                buttons=["copy"],
                elem_id="mars-signature",
            )
        with gr.Accordion("Settings", open=False, elem_id="mars-settings"):
            controls = _controls()
        outputs = [notices, ranking, compared, signature, question, paper]
        values = [*inputs, *controls]
        scoring: dict[str, Any] = {"show_progress_on": ranking, **_MODEL, **_PRIVATE}
        button.click(handlers.page, values, outputs, **scoring)
        paper.click(handlers.paper, question, outputs, **scoring)
        for example, chosen in zip(examples, buttons, strict=True):
            filled = chosen.click(partial(_fill, example), None, [lesson, *inputs], queue=False, **_PRIVATE)
            filled.then(handlers.page, values, outputs, **scoring)
        if examples:
            arrive = partial(_arrive, handlers, examples[0])
            page.load(arrive, None, [lesson, *inputs, *outputs], show_progress="hidden", **_PRIVATE)
        gr.api(handlers.api, api_name="score", **_MODEL)
    page.queue(max_size=64, api_open=False, default_concurrency_limit=4)
    return page


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
            max_lines=max_lines,
            placeholder=hint,
            elem_id=f"mars-{label.split(',')[0].lower()}",
        )
        for label, lines, max_lines, hint in fields
    ]


def _controls() -> list[Any]:
    """Of the settings, in their order."""
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
            value=DEFAULTS["reference_aggregation"],
            label="With several references",
            info="The best of them counts, or their mean.",
        )
        use_context = gr.Checkbox(
            DEFAULTS["use_context"], label="Use the context", info="Off: only the references count."
        )
    gr.HTML(
        f'<p class="mars-hint">Models: preset “{PRESET}”. Scores with different signatures cannot be compared.</p>'
    )
    return [task, aggregation, use_context]


def _fill(example: Example) -> list[str]:
    question = example.question
    texts = map("\n".join, (question.references, question.candidates, question.samples))
    return [example.lesson, question.context, *texts]


def _arrive(handlers: Handlers, example: Example) -> list[Any]:
    return [*_fill(example), *handlers.arrive(example.question)]


def theme() -> Any:
    """The theme of gradio."""
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
