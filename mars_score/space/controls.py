"""The controls of the settings, and how they depend on each other."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import gradio as gr

from mars_score.settings.fields import TASKS
from mars_score.space import limits
from mars_score.space.choices import BY_FORM, HEADS, MASK_RATIO_STEP, OWN_PROMPT, PRESET, Choices

_OWN_PROMPT = (("Own prompt", OWN_PROMPT),)
PRIVATE: dict[str, Any] = {"api_visibility": "private"}  # of events: not a part of the API


def settings_controls() -> dict[str, Any]:
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
    made["learned"] = gr.Radio(
        [("None", ""), *((name, name) for name in HEADS)],
        value="",
        label="Learned head",
        info="A small correction of the score that was trained on human ratings; it knows only the defaults of "
        "the other settings, and needs references.",
        visible=bool(HEADS),
        elem_id="mars-learned",
    )
    gr.HTML(
        f'<p class="mars-hint">Models: preset “{PRESET}”. Scores with different signatures cannot be compared.</p>'
    )
    names = "max_mask_ratio", "augmentation_aggregation", "use_context", "task"
    dependent = "planner", "augmentation_aggregation", "q", "samples", "task", "prompt"
    for name in names:
        made[name].change(
            _dependent, [made[one] for one in names], [made[one] for one in dependent], queue=False, **PRIVATE
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


def values_of(choices: Choices) -> list[Any]:
    """The values of the controls, in the order of :func:`settings_controls`."""
    task = choices.task
    own_prompt = task is not None and task not in TASKS
    shown = {"task": OWN_PROMPT if own_prompt else task or BY_FORM, "learned": choices.learned or ""}
    return [*{**asdict(choices), **shown}.values(), task if own_prompt else None]
