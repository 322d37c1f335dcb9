"""``mars score --estimate``: how long a file will take."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from mars_score.cli.options import scorer_arguments
from mars_score.cli.running import print_line, scoring
from mars_score.cli.runs import make_spec, readable_again

if TYPE_CHECKING:
    from mars_score.data.validation import Row
    from mars_score.runs.estimate import Estimate


def show_estimate(args: argparse.Namespace) -> int:
    """Print it, as one JSON object with ``--json``; see :func:`mars_score.cli.main` for errors.

    Returns:
        The exit code, 0.
    """
    if args.engine == "ray":
        raise ValueError("--estimate measures this machine alone; leave --engine ray out")
    with readable_again(args):
        spec = make_spec(args)
        from mars_score.runs.estimate import estimate
        from mars_score.scorer import MarsScorer

        if spec.plan.threads is not None:
            import torch

            torch.set_num_threads(spec.plan.threads)
        scorer = MarsScorer(**scorer_arguments(args))
        columns = spec.rows.columns

        def score(rows: Sequence[Row]) -> None:
            candidates, references, contexts = zip(*rows, strict=True)
            scorer.score(
                list(candidates),
                None if columns.reference is None else [list(texts) for texts in references],
                None if columns.context is None else list(contexts),
            )

        with scoring():  # without the notices of a few rows
            found = estimate(spec.rows, spec.plan.settings, scorer.runtime, score, args.workers or 1)
    if args.json:
        print_line(json.dumps({"estimate": found.to_dict()}))
    else:
        for line in lines(found):
            print_line(line)
    return 0


def lines(found: Estimate) -> list[str]:
    """What is printed."""
    whole = timedelta(seconds=max(1, round(found.seconds)))
    workers = f" with {found.workers} workers, if they do not slow each other" if found.workers > 1 else ""
    shown = [f"about {whole} for {found.rows:,} rows{workers}"]
    if found.kept < 1:
        shown.append(f"new: {1 - found.kept:.0%} of the rows, {_rate(found.new)}")
    if found.kept:
        shown.append(f"in the store: {found.kept:.0%} of the rows, {_rate(found.old)}")
    return [*shown, f"loading models: {found.loading:.1f} s", f"measured on {found.measured} rows"]


def _rate(seconds: float) -> str:
    return f"{1 / max(seconds, 1e-9):.3g} per second"
