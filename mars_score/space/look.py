"""The theme of the Space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CSS = Path(__file__).with_name("look.css")


def theme() -> Any:
    """The theme of gradio."""
    import gradio as gr

    rust = gr.themes.Color(
        name="rust",
        c50="#fdf5f1",
        c100="#fae6dd",
        c200="#f3c9b8",
        c300="#e8a288",
        c400="#d97953",
        c500="#c2562f",
        c600="#a84522",
        c700="#89371c",
        c800="#6b2c18",
        c900="#4f2214",
        c950="#31140b",
    )
    sans = ("Inter", "ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "Helvetica", "Arial", "sans-serif")
    return gr.themes.Base(
        primary_hue=rust,
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
