"""The layout of the page, and the events that call the handlers."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import gradio as gr

from mars_score.fields import TASKS
from mars_score.space import limits
from mars_score.space.choices import BY_FORM, MASK_RATIO_STEP, OWN_PROMPT, PRESET, Choices
from mars_score.space.examples import Example
from mars_score.space.handlers import Handlers
from mars_score.space.look import MASK_COLOUR
from mars_score.space.pages import WAITING

_HEAD = """<div class="mars-head"><h1><em>MARS</em> scores generated text in its context</h1>
<p>A good answer need not repeat the reference. MARS lets a language model write what else would fit the context,
and compares each candidate with the reference, with these texts and with the context.
<a href="https://aclanthology.org/2021.acl-long.521" target="_blank" rel="noopener">Read the paper</a></p></div>"""
_FILE_HELP = f"""A **CSV** file (with a header, in UTF-8) or a **JSONL** file with the columns `prediction`,
`reference` and `context`. Further references go into `reference_2`, `reference_3`, ..., in JSONL into a list.
If no row has a reference, the contexts alone count. The settings of the other tab count here, too. At most
{limits.BATCH_ROWS} rows and {limits.BATCH_BYTES // 1_000_000} MB."""
_OWN_PROMPT = (("Own prompt", OWN_PROMPT),)
_PRIVATE: dict[str, Any] = {"api_visibility": "private"}
_MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}


def build(handlers: Handlers, examples: list[Example]) -> gr.Blocks:
    """The page, with its queue."""
    with gr.Blocks(title="MARS", analytics_enabled=False, delete_cache=(600, 3600)) as page:
        gr.HTML(_HEAD)
        with gr.Tab("Compare candidates"):
            settings = _compare(page, handlers, examples)
        with gr.Tab("Score a file"):
            _file(handlers, settings)
        gr.api(handlers.api, api_name="score", **_MODEL)
    page.queue(max_size=64, api_open=False, default_concurrency_limit=4)
    return page


def _settings() -> dict[str, Any]:
    """The controls by the fields of Choices, in their order, and ``prompt``."""
    made: dict[str, Any] = {}
    with gr.Row():
        made["task"] = gr.Radio(
            [("By the form of the context", BY_FORM), *((one.capitalize(), one) for one in TASKS), *_OWN_PROMPT],
            value=BY_FORM,
            label="Task",
            info="What a candidate is to its context. It says what the language model is asked to write: for a "
            "question or data nothing, unless with a prompt of your own.",
            elem_id="mars-task",
        )
        made["prompt"] = gr.Textbox(
            label="Your prompt",
            lines=2,
            visible=False,
            placeholder="{context}\n\nDescribe this in one sentence.",
            info="{context} stands for the context.",
            elem_id="mars-prompt",
        )
    with gr.Row():
        made["samples"] = gr.Slider(
            0,
            limits.SAMPLES,
            Choices.samples,
            step=1,
            label="Samples",
            info="Texts that the language model writes given the context. 0: none.",
            elem_id="mars-samples",
        )
        made["reference_aggregation"] = gr.Radio(
            [("Best", "max"), ("Mean", "mean")],
            value=Choices.reference_aggregation,
            label="With several references",
            info="The best of them counts, or their mean.",
        )
        made["use_context"] = gr.Checkbox(
            Choices.use_context,
            label="Use the context",
            info="Off: only the references count.",
        )
    made |= _infilling()
    gr.HTML(
        f'<p class="mars-hint">Models: preset “{PRESET}”. Scores with different signatures cannot be compared.</p>'
    )
    names = "max_mask_ratio", "augmentation_aggregation", "use_context", "task"
    dependent = "planner", "augmentation_aggregation", "q", "samples", "task", "prompt"
    for name in names:
        made[name].change(
            _dependent, [made[one] for one in names], [made[one] for one in dependent], queue=False, **_PRIVATE
        )
    return {name: made[name] for name in (*(one.name for one in fields(Choices)), "prompt")}


def _infilling() -> dict[str, Any]:
    """The settings that count only where words are masked."""
    masking = Choices.max_mask_ratio > 0
    with gr.Row():
        ratio = gr.Slider(
            0,
            1,
            Choices.max_mask_ratio,
            step=MASK_RATIO_STEP,
            label="Rewrite references up to this share of words",
            info="As in the paper: words are masked and filled anew, each time more of them. 0: no rewriting.",
            elem_id="mars-ratio",
        )
        planner = gr.Radio(
            [("Plain", "none"), ("Planned (slow)", "self")],
            value=Choices.planner,
            label="How gaps are filled",
            interactive=masking,
            info="Planned: looking ahead to the words after the gap, as in the paper; about seven times slower.",
        )
    with gr.Row():
        aggregation = gr.Radio(
            [("Best version", "best"), ("Weighted mean", "weighted")],
            value=Choices.augmentation_aggregation,
            label="How versions count",
            interactive=masking,
            info="Best: the reference and the nearest version count half each. Weighted: as in the paper.",
        )
        q = gr.Slider(
            0.1,
            1,
            Choices.q,
            step=0.1,
            label="Weight of each further version (q)",
            interactive=masking and Choices.augmentation_aggregation == "weighted",
            info="For the weighted mean: a version counts q times as much as the one before it.",
        )
    return {"max_mask_ratio": ratio, "planner": planner, "augmentation_aggregation": aggregation, "q": q}


def _dependent(ratio: float, aggregation: str, use_context: bool, task: str) -> list[Any]:
    """The controls whose effect depends on others: without effect they are disabled, at their defaults."""
    own_prompt = use_context and task == OWN_PROMPT
    return [
        _usable(ratio > 0, Choices.planner),
        _usable(ratio > 0, Choices.augmentation_aggregation),
        _usable(ratio > 0 and aggregation == "weighted", Choices.q),
        _usable(use_context, Choices.samples),
        _usable(use_context, BY_FORM),
        gr.update(visible=own_prompt),
    ]


def _usable(usable: bool, default: Any) -> Any:
    return gr.update(interactive=True) if usable else gr.update(value=default, interactive=False)


def _compare(page: gr.Blocks, handlers: Handlers, examples: list[Example]) -> dict[str, Any]:
    """The tab for one context; returns the settings, which count for files, too."""
    gr.HTML('<p class="mars-hint">Try an example, or write your own:</p>')
    with gr.Row(elem_id="mars-examples"):
        buttons = [gr.Button(one.title, size="sm") for one in examples]
    lesson = gr.HTML(elem_id="mars-lesson")
    with gr.Row(equal_height=False):
        with gr.Column(scale=5):
            inputs = _texts()
            button = gr.Button("Score", variant="primary", elem_id="mars-score")
            with gr.Accordion("Settings", open=False, elem_id="mars-settings"):
                settings = _settings()
        with gr.Column(scale=6):
            notices = gr.HTML(elem_id="mars-notices")
            ranking = gr.HTML(WAITING, elem_id="mars-ranking")
    with gr.Accordion("What MARS did", elem_id="mars-details"):
        compared = gr.HTML(elem_id="mars-compared")
        masked = gr.HighlightedText(
            label="Masked words, by the share of words masked",
            color_map={"masked": MASK_COLOUR},
            show_inline_category=False,
            visible=False,
            elem_id="mars-masked",
        )
        signature = _signature("mars-signature")
    outputs = [notices, ranking, masked, compared, signature]
    values = [*inputs, *settings.values()]
    button.click(handlers.page, values, outputs, show_progress_on=ranking, **_MODEL, **_PRIVATE)
    for example, one in zip(examples, buttons, strict=True):
        filled = one.click(partial(_fill, example), None, [lesson, *inputs], queue=False, **_PRIVATE)
        filled.then(handlers.page, values, outputs, show_progress_on=ranking, **_MODEL, **_PRIVATE)
    if examples:
        first = partial(handlers.first_page, examples[0].question)
        page.load(partial(_fill, examples[0]), None, [lesson, *inputs], queue=False, **_PRIVATE)
        page.load(first, None, outputs, queue=False, show_progress="hidden", **_PRIVATE)
    return settings


def _texts() -> list[Any]:
    """Context, references and candidates."""
    return [
        gr.Textbox(
            label="Context",
            lines=3,
            max_lines=8,
            info="What came before: a dialogue (one turn per line), the start of a story, an article, a question.",
            elem_id="mars-context",
        ),
        gr.Textbox(
            label="References, one per line",
            lines=2,
            max_lines=6,
            info="Good texts, written by people. Without any, the context alone counts.",
            elem_id="mars-references",
        ),
        gr.Textbox(
            label="Candidates, one per line",
            lines=5,
            max_lines=14,
            info="Texts to score.",
            elem_id="mars-candidates",
        ),
    ]


def _signature(elem_id: str, *, visible: bool = True) -> gr.Textbox:
    return gr.Textbox(
        label="Signature, to quote beside the scores",
        interactive=False,
        buttons=["copy"],
        lines=2,
        visible=visible,
        elem_id=elem_id,
    )


def _fill(example: Example) -> tuple[str, str, str, str]:
    question = example.question
    texts = question.context, "\n".join(question.references), "\n".join(question.candidates)
    return f'<p class="mars-lesson">{example.lesson}</p>', *texts


def _file(handlers: Handlers, settings: dict[str, Any]) -> None:
    gr.Markdown(_FILE_HELP)
    with gr.Row(equal_height=False):
        with gr.Column(scale=5):
            upload = gr.File(label="File", file_types=[".csv", ".jsonl"], height=150, elem_id="mars-upload")
            with gr.Row():
                sample = gr.Button("Use a sample", elem_id="mars-sample")
                stop = gr.Button("Stop", variant="stop", visible=False, elem_id="mars-stop")
                start = gr.Button("Score", variant="primary", elem_id="mars-batch")
            preview = gr.HTML(elem_id="mars-preview")
        with gr.Column(scale=6):
            scores = gr.HTML('<div class="mars-empty">Scores will be here.</div>', elem_id="mars-scores")
            with gr.Row():
                as_csv = gr.DownloadButton("Download CSV", visible=False, elem_id="mars-csv")
                as_jsonl = gr.DownloadButton("Download JSONL", visible=False, elem_id="mars-jsonl")
            signature = _signature("mars-batch-signature", visible=False)
    upload.change(handlers.preview, [upload, settings["use_context"]], preview, **_PRIVATE)
    sample.click(handlers.sample, None, upload, **_PRIVATE)
    shown = start.click(_stoppable, None, [stop, start], queue=False, **_PRIVATE)
    running = shown.then(
        handlers.batch,
        [upload, *settings.values()],
        [scores, as_csv, as_jsonl, signature],
        show_progress_on=scores,
        concurrency_limit=1,
        concurrency_id="batch",
        **_PRIVATE,
    )
    running.then(_startable, None, [stop, start], queue=False, **_PRIVATE)
    stop.click(_startable, None, [stop, start], cancels=[running], queue=False, **_PRIVATE)


def _stoppable() -> tuple[Any, Any]:
    return gr.update(visible=True), gr.update(visible=False)


def _startable() -> tuple[Any, Any]:
    return gr.update(visible=False), gr.update(visible=True)
