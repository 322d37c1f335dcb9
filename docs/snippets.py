"""Run the snippets of README, and write what they print into the blocks below them.

    python -m docs.snippets    # needs the models of preset "mini"

A text block directly below a block of Python or commands holds its output, without signatures and notices. Files
that commands write (``cat > NAME <<'END'``) exist before any command runs.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

from mars_score.cli import main as mars

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
FILES = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END\n", flags=re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"^```(python|bash)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", flags=re.MULTILINE | re.DOTALL)
LEFT_OUT = ("signature ", "notice: ")


def main() -> None:
    """Rewrite README, and print whether it has changed."""
    os.environ["MARS_DTYPE"] = "float32"  # the same on all machines
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "mars", Path(folder) / "mars")
        os.chdir(folder)
        for name, rows in FILES.findall(text):
            Path(name).write_text(rows, encoding="utf-8")
        changed = run_page(README.name, text, {"__name__": "readme"})
        os.chdir(ROOT)
    README.write_text(changed, encoding="utf-8")
    print("README.md has not changed" if changed == text else "README.md has changed")


def run_page(name: str, text: str, namespace: dict[str, object]) -> str:
    """Run the snippets of a page in order, and return the page with what they print.

    Args:
        name: the page's name, for tracebacks.
        text: the page. Its commands run only if their output is shown; ``pip`` is skipped.
        namespace: the namespace of the Python snippets.
    """

    def run(snippet: re.Match[str]) -> str:
        language, code, shown = snippet.groups()
        if language == "bash" and shown is None:
            return snippet[0]
        with contextlib.redirect_stdout(io.StringIO()) as output:
            if language == "bash":
                _run_commands(code)
            else:
                before = "\n" * text[: snippet.start(2)].count("\n")  # Tracebacks show the page's lines.
                exec(compile(before + code, name, "exec"), namespace)
        if shown is None:
            return snippet[0]
        lines = output.getvalue().splitlines(keepends=True)
        printed = "".join(line for line in lines if not line.startswith(LEFT_OUT))
        return f"```{language}\n{code}```\n\n```text\n{printed}```\n"

    return SNIPPET.sub(run, text)


def _run_commands(lines: str) -> None:
    for line in FILES.sub("", lines).splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "pip":
            continue
        if program != "mars" or mars(arguments) != 0:
            raise RuntimeError(f"not a command that runs here: {line}")


if __name__ == "__main__":
    main()
