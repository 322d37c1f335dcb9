"""Make the pictures of the Space for the docs, and a JSON file of the page's text for tests.

Run: ``python -m docs.pictures.make``. It needs Debian's chromium and the extra ``dev``.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import IO, Literal

from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

FOLDER = Path(__file__).parent
APP = FOLDER.parent.parent / "app.py"
SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 1000},
    "phone": {"width": 390, "height": 844},
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CHROMIUM = shutil.which("chromium")
_FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
]


@contextlib.contextmanager
def running_app(
    log: IO[bytes], *command: str, seconds: float = 300, **environment: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the Space with more environment variables, yield its address and process, and stop it at the end.

    Its output goes to ``log``. ``command`` runs ``app.py``, by default this Python.

    Raises:
        RuntimeError: it did not start within ``seconds``. The message holds its output.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    scratch = tempfile.TemporaryDirectory(prefix="mars-app-")
    process = subprocess.Popen(
        [*(command or (sys.executable,)), str(APP)],
        env={**os.environ, "TMPDIR": scratch.name, **environment, "GRADIO_SERVER_PORT": port},
        stdout=log,
        stderr=log,
    )
    try:
        end = time.monotonic() + seconds
        while b"Running on" not in Path(log.name).read_bytes():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"app.py did not start:\n{Path(log.name).read_text()}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()
        scratch.cleanup()


@contextlib.contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run headless Chromium, and close it at the end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        yield browser
        browser.close()


def visit(context: BrowserContext, address: str) -> Page:
    """Open the Space and wait until its first example shows the scores of all metrics."""
    page = context.new_page()
    page.set_default_timeout(120_000)
    end = time.monotonic() + 600
    while time.monotonic() < end:
        page.goto(address)
        page.wait_for_selector(".mars-main")
        if page.locator(".mars-name:text-is('MARS paper')").count():
            return page
        page.wait_for_timeout(5_000)  # the paper's scores are still being computed
    raise RuntimeError("the Space does not show all scores on arrival; see its output")


def visible_text(page: Page, selector: str = "body") -> list[str]:
    """Return the lines of text that an element shows, then the contents of its text fields.

    Gradio's transient announcements to screen readers are left out.
    """
    page.add_style_tag(content=".sr-only[role=status] { display: none }")
    shown = [line.strip() for line in page.inner_text(selector).splitlines()]
    fields = page.locator(f"{selector} textarea:visible")
    return [line for line in shown if line] + [fields.nth(index).input_value() for index in range(fields.count())]


def main() -> None:
    """Make pictures with the widths of a desktop and a phone, in light and dark colours."""
    with (
        running_chromium() as browser,
        tempfile.NamedTemporaryFile() as log,
        running_app(log, MARS_PRESET="mini", MARS_DTYPE="float32") as (address, _),
    ):
        for (device, size), scheme in product(SIZES.items(), SCHEMES):
            context = browser.new_context(viewport=size, color_scheme=scheme)
            page = visit(context, address)
            name = device if scheme == "light" else f"{device}-{scheme}"
            page.screenshot(path=FOLDER / f"space-{name}.png")
            if name == "desktop":
                text = json.dumps(visible_text(page), ensure_ascii=False, indent=1)
                (FOLDER / "space-desktop.json").write_text(f"{text}\n", encoding="utf-8")
            context.close()


if __name__ == "__main__":
    main()
