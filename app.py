"""The Space: MARS in a browser, and as an API. Run: ``python app.py``.

``MARS_PRESET`` names the preset. Without it visitors choose between ``mini`` and ``medium``, if ``medium`` is
installed or the Space is on the Hub.
"""

import os
import threading
import warnings
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
if "SPACE_ID" in os.environ:  # On the Hub a proxy passes on the visitor's address.
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "127.0.0.1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16")

from mars_score.errors import MarsWarning

try:
    from starlette.middleware import Middleware

    from mars_score.data.reading import read_rows
    from mars_score.explanation import CSS as WORDS_CSS
    from space import limits
    from space.answer import Answerer
    from space.layout import CSS, SCRIPT, Handlers, build, theme
    from space.questions import CHOICES, read_examples
except ModuleNotFoundError as error:
    raise ImportError(f"{error.name} is not installed; run: pip install 'mars-score[space]'") from error


EXAMPLES = Path(__file__).parent / "examples"


def main() -> None:
    """Answer the first example, start the server, and answer the other examples in the background."""
    warnings.simplefilter("ignore", MarsWarning)  # The page shows them.
    limits.hide_texts()
    examples = read_examples(EXAMPLES / "space.json")
    rows = [row for file in sorted(EXAMPLES.glob("*.jsonl")) for row in read_rows(file).rows]
    documents = [reference for row in rows for reference in row["references"]]
    documents += [reference for example in examples for reference in example.question.references]
    answerer = Answerer(documents or None)
    questions = [replace(example.question, preset=preset) for preset in CHOICES for example in examples]
    paper = [replace(question, paper=True) for question in questions if question.references]
    answerer.prepare(questions[:1])  # so that the first visitor sees a result at once
    later = [*questions[1:], *paper]  # The paper's MARS keeps the language model busy for long.
    page = build(Handlers(answerer), examples)
    page.launch(
        theme=theme(),
        css_paths=[CSS, WORDS_CSS],
        head=f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>",
        footer_links=["api"],
        run_history=False,
        show_error=False,
        ssr_mode=False,
        mcp_server=False,
        app_kwargs={"middleware": [Middleware(limits.RequestLimit)]},
        prevent_thread_lock=True,
    )
    threading.Thread(target=answerer.prepare, args=[later], daemon=True).start()
    page.block_thread()


if __name__ == "__main__":
    main()
