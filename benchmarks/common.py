"""What the benchmarks share: options, scorers, printing."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from rich import print as rich_print
from rich.table import Table

from mars_score import MarsScorer
from mars_score.store import store_folder


def parser(description: str | None, *, files: bool = True) -> argparse.ArgumentParser:
    """Options that all benchmarks take; with ``files`` also those of :func:`sampling.sample_rows`."""
    made = argparse.ArgumentParser(description=description, allow_abbrev=False)
    if files:
        made.add_argument(
            "files", nargs="+", metavar="FILE.jsonl", help="keys context, references, candidate, group"
        )
        made.add_argument("--max-context-words", type=int, default=150, help="leave out rows with longer contexts")
        made.add_argument(
            "--min-reference-words", type=int, default=5, help="leave out rows with shorter references"
        )
        made.add_argument("--seed", type=int, default=0, help="of the sample")
    made.add_argument("--json", action="store_true", help="print one JSON object a line")
    return made


@cache
def language_model() -> tuple[Any, Any]:
    """Model and tokenizer of preset mini; converted once in the store."""
    from mars_score.models import load_language_model
    from mars_score.settings import resolve_settings

    models = resolve_settings("mini").models
    return load_language_model(models.language_model, "causal", models.dtype, None, store_folder(None))


def make_scorer(batch_size: int, **settings: Any) -> MarsScorer:
    """A scorer of preset mini that reads and keeps nothing, so that all work is done anew."""
    return MarsScorer("mini", batch_size=batch_size, store=False, language_model=language_model(), **settings)


def progress(text: str) -> None:
    """Say on standard error what is being done."""
    print(text, file=sys.stderr, flush=True)


def report(
    args: argparse.Namespace, name: str, ratio: float | None, target: float | None, figures: Mapping[str, Any]
) -> None:
    """Print a result: one JSON object on one line, or a table."""
    settings = {key: value for key, value in vars(args).items() if key != "json"}
    entry = {"name": name, "ratio": ratio, "target": target, "figures": figures, "settings": settings}
    if args.json:
        print(json.dumps({**entry, "machine": _machine()}, ensure_ascii=False), flush=True)
        return
    table = Table(title=name, show_header=False)
    first = [("ratio", ratio), ("target", target)] if target is not None else [("ratio", ratio)]
    for key, value in (*first, *figures.items(), *_machine().items()):
        table.add_row(key.replace("_", " "), _readable(value))
    rich_print(table)


def _readable(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return (
        " .. ".join(map(_readable, value))
        if isinstance(value, Iterable) and not isinstance(value, str)
        else str(value)
    )


def _machine() -> dict[str, Any]:
    import torch

    device = (
        torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    )
    return {
        "device": device,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
