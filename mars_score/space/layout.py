"""The layout of the page, and the events that call the handlers."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from mars_score.space import limits
from mars_score.space.choices import MASK_RATIO_STEP, PRESET, Choices
from mars_score.space.examples import Example
from mars_score.space.handlers import Handlers
from mars_score.space.look import MASK_COLOUR
from mars_score.space.pages import WAITING

_HEAD = """<div class="mars-head"><h1><em>MARS</em> scores generated text in its context</h1>
<p>A good answer need not repeat the reference. MARS lets a language model rewrite the reference with the context
in view, and compares each candidate with all the versions.
<a href="https://aclanthology.org/2021.acl-long.521" target="_blank" rel="noopener">Read the paper</a></p></div>"""
_FILE_HELP = f"""A **CSV** file (with a header, in UTF-8) or a **JSONL** file with the columns `prediction`,
`reference` and `context`. Further references go into `reference_2`, `reference_3`, ..., in JSONL into a list.
At most {limits.BATCH_ROWS} rows and {limits.BATCH_BYTES // 1_000_000} MB. The settings above count here, too."""
_PRIVATE: dict[str, Any] = {"api_visibility": "private"}
_MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}


def build(handlers: Handlers, examples: list[Example]) -> gr.Blocks:
    """The page, with its queue."""
    with gr.Blocks(title="MARS", analytics_enabled=False, delete_cache=(600, 3600)) as page:
        gr.HTML(_HEAD)
        with gr.Accordion("Settings", open=False, elem_id="mars-settings"):
            settings = _settings()
        with gr.Tab("Compare candidates"):
            _compare(page, handlers, examples, settings)
        with gr.Tab("Score a file"):
            _file(handlers, settings)
        gr.api(handlers.api, api_name="score", **_MODEL)
    page.queue(max_size=64, api_open=False, default_concurrency_limit=4)
    return page


def _settings() -> list[gr.components.Component]:
    """In the order of the fields of Choices."""
    with gr.Row():
        ratio = gr.Slider(
            0,
            1,
            Choices.max_mask_ratio,
            step=MASK_RATIO_STEP,
            label="Rewrite up to this share of words",
            info="The reference is rewritten several times, each time with more words masked. 0: no rewriting.",
            elem_id="mars-ratio",
        )
        planner = gr.Radio(
            [("Plain", "none"), ("Planned (slow)", "self")],
            value=Choices.planner,
            label="How gaps are filled",
            info="Planned: looking ahead to the words after the gap, as in the paper; about seven times slower.",
        )
        use_context = gr.Checkbox(
            Choices.use_context,
            label="Use the context",
            info="Off: it counts neither for rewriting nor for scores.",
        )
    with gr.Row():
        aggregation = gr.Radio(
            [("Best version", "best"), ("Weighted mean", "weighted")],
            value=Choices.augmentation_aggregation,
            label="How versions count",
            info="Best: the reference and the nearest version count half each. Weighted: as in the paper.",
        )
        q = gr.Slider(
            0.1,
            1,
            Choices.q,
            step=0.1,
            label="Weight of each further version (q)",
            interactive=Choices.augmentation_aggregation == "weighted",
            info="For the weighted mean: a version counts q times as much as the one before it.",
        )
        several = gr.Radio(
            [("Best", "max"), ("Mean", "mean")],
            value=Choices.reference_aggregation,
            label="With several references",
            info="The best of them counts, or their mean.",
        )
    gr.HTML(
        f'<p class="mars-hint">Models: preset “{PRESET}”. Rare words are masked last; how rare a word is, is '
        "counted over the references that you give. Scores with different signatures cannot be compared.</p>"
    )
    aggregation.change(_weighting, aggregation, q, queue=False, **_PRIVATE)
    return [ratio, planner, aggregation, q, several, use_context]


def _weighting(aggregation: str) -> Any:
    """The slider of q: it counts only with the weighted mean."""
    return (
        gr.update(interactive=True) if aggregation == "weighted" else gr.update(value=Choices.q, interactive=False)
    )


def _compare(page: gr.Blocks, handlers: Handlers, examples: list[Example], settings: list[Any]) -> None:
    gr.HTML('<p class="mars-hint">Try an example, or write your own:</p>')
    with gr.Row(elem_id="mars-examples"):
        buttons = [gr.Button(one.title, size="sm") for one in examples]
    lesson = gr.HTML(elem_id="mars-lesson")
    with gr.Row(equal_height=False):
        with gr.Column(scale=5):
            inputs = _texts()
            button = gr.Button("Score", variant="primary", elem_id="mars-score")
        with gr.Column(scale=6):
            notices = gr.HTML(elem_id="mars-notices")
            ranking = gr.HTML(WAITING, elem_id="mars-ranking")
    with gr.Accordion("What MARS did", elem_id="mars-details"):
        masked = gr.HighlightedText(
            label="Masked words, by the share of words masked",
            color_map={"masked": MASK_COLOUR},
            show_inline_category=False,
            elem_id="mars-masked",
        )
        augmented = gr.HTML(elem_id="mars-augmented")
        signature = _signature("mars-signature")
    outputs = [notices, ranking, masked, augmented, signature]
    button.click(handlers.page, [*inputs, *settings], outputs, show_progress_on=ranking, **_MODEL, **_PRIVATE)
    for example, one in zip(examples, buttons, strict=True):
        filled = one.click(partial(_fill, example), None, [lesson, *inputs], queue=False, **_PRIVATE)
        filled.then(handlers.page, [*inputs, *settings], outputs, show_progress_on=ranking, **_MODEL, **_PRIVATE)
    if examples:
        first = partial(handlers.first_page, examples[0].question)
        page.load(partial(_fill, examples[0]), None, [lesson, *inputs], queue=False, **_PRIVATE)
        page.load(first, None, outputs, queue=False, show_progress="hidden", **_PRIVATE)


def _texts() -> list[Any]:
    """Context, references and candidates."""
    return [
        gr.Textbox(
            label="Context",
            lines=3,
            max_lines=8,
            info="What came before: the beginning of a story, a question, an article.",
            elem_id="mars-context",
        ),
        gr.Textbox(
            label="References, one a line",
            lines=2,
            max_lines=6,
            info="Good texts, written by people.",
            elem_id="mars-references",
        ),
        gr.Textbox(
            label="Candidates, one a line",
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


def _file(handlers: Handlers, settings: list[Any]) -> None:
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
    context_used = settings[-1]
    upload.change(handlers.preview, [upload, context_used], preview, **_PRIVATE)
    sample.click(handlers.sample, None, upload, **_PRIVATE)
    shown = start.click(_stoppable, None, [stop, start], queue=False, **_PRIVATE)
    running = shown.then(
        handlers.batch,
        [upload, *settings],
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
