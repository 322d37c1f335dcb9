"""The tab for files."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from mars_score.space import limits
from mars_score.space.handlers import PRIVATE, Handlers
from mars_score.space.uploads import SUFFIXES

_FILE_HELP = f"""A **CSV** or **TSV** file (with a header, in UTF-8) or a **JSONL** file with the columns
`prediction`, `reference` (in JSONL a text or a list of texts) and `context`. Without the column `reference` the
contexts alone count. The settings of the other tab count here, too. At most {limits.BATCH_ROWS} rows and
{limits.BATCH_BYTES // 1_000_000} MB."""


def file_tab(handlers: Handlers, settings: dict[str, Any]) -> None:
    """A file, its scores and downloads; ``settings`` are the controls of the other tab."""
    gr.Markdown(_FILE_HELP)
    with gr.Row(equal_height=False):
        with gr.Column(scale=5):
            upload = gr.File(label="File", file_types=list(SUFFIXES), height=150, elem_id="mars-upload")
            with gr.Row():
                sample = gr.Button("Use a sample", elem_id="mars-sample")
                stop = gr.Button("Stop", variant="stop", visible=False, elem_id="mars-stop")
                start = gr.Button("Score", variant="primary", elem_id="mars-batch")
        with gr.Column(scale=6):
            scores = gr.HTML('<div class="mars-empty">Scores will be here.</div>', elem_id="mars-scores")
            with gr.Row():
                as_csv = gr.DownloadButton("Download CSV", visible=False, elem_id="mars-csv")
                as_jsonl = gr.DownloadButton("Download JSONL", visible=False, elem_id="mars-jsonl")
            signature = signature_box("mars-batch-signature", visible=False)
    sample.click(handlers.sample, None, upload, **PRIVATE)
    started = start.click(partial(_stop_button, True), None, stop, queue=False, **PRIVATE)
    running = started.then(
        handlers.batch,
        [upload, *settings.values()],
        [scores, as_csv, as_jsonl, signature],
        show_progress_on=scores,
        concurrency_limit=1,
        concurrency_id="batch",
        **PRIVATE,
    )
    running.then(partial(_stop_button, False), None, stop, queue=False, **PRIVATE)
    stop.click(partial(_stop_button, False), None, stop, cancels=[running], queue=False, **PRIVATE)


def _stop_button(visible: bool) -> Any:
    return gr.update(visible=visible)


def signature_box(elem_id: str, *, visible: bool = True) -> gr.Textbox:
    """The signature, to copy."""
    return gr.Textbox(
        label="Signature, to quote beside the scores",
        interactive=False,
        buttons=["copy"],
        lines=2,
        visible=visible,
        elem_id=elem_id,
    )
