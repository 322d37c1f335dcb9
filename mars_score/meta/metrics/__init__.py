"""The registry of metrics: MARS, common alternatives, and trivial baselines.

A metric is a subclass of :class:`mars_score.meta.metrics.base.Metric` and a line in ``PEERS``. Variants of MARS
need no class: ``mars[sigma=0,planner=none]`` is MARS with these settings, and ``references=false`` scores by the
contexts alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mars_score.meta.metrics.base import Metric, Models, Scoring

# Name -> title and settings, in the order of tables.
VARIANTS = {
    "mars": ("MARS", ""),
    "mars_paper": ("MARS, paper", "variant=paper"),
    "mars_plus": ("MARS, plus", "variant=plus"),
    "mars_fast": ("MARS, fast", "variant=fast"),
    "mars_no_context": ("MARS without context", "use_context=false"),
    "mars_no_references": ("MARS, plus, without references", "variant=plus,references=false"),
    "mars_fast_no_references": ("MARS, fast, without references", "variant=fast,references=false"),
    "mars_no_planning": ("MARS, paper, without planning", "variant=paper,planner=none"),
    "reference_cosine": ("cosine with reference", "variant=paper,max_mask_ratio=0,strip_urls_hashtags=false"),
}
# Name -> module and class; a module is imported with the first of its metrics.
PEERS = {
    "bleu": "lexical.Bleu",
    "bleu1": "lexical.Bleu1",
    "meteor": "lexical.Meteor",
    "rouge_l": "lexical.RougeL",
    "chrf": "lexical.Chrf",
    "bertscore": "neural.BertScore",
    "sentence_mover": "neural.SentenceMover",
    "moverscore": "neural.MoverScore",
    "perplexity": "neural.Perplexity",
    "context_perplexity": "neural.ContextPerplexity",
    "context_cosine": "neural.ContextCosine",
    "length": "lexical.Length",
}
METRICS = (*VARIANTS, *PEERS)
_BRACKETS = re.compile(r"mars\[(.*)\]", re.DOTALL)


def parse_names(text: str) -> list[str]:
    """Split names at commas outside brackets; raise ValueError for an unknown name."""
    names = [name.strip() for name in re.split(r",(?![^\[]*\])", text) if name.strip()]
    for name in names:
        _check(name)
    return names


def make_metric(name: str | Scoring, models: Models) -> Metric:
    """Make a metric from a name of :data:`METRICS`, a name with brackets (see above), or a user's object.

    Raises:
        ValueError: a name is unknown, or a setting out of range or without effect.
        TypeError: a setting is unknown, or an object has no ``score`` method.
    """
    from mars_score.meta.metrics.base import MarsVariant, Metric, OwnMetric

    if not isinstance(name, str):
        return name if isinstance(name, Metric) else OwnMetric(models, name)
    _check(name)
    if name in PEERS:
        return _load(PEERS[name])(models)
    if brackets := _BRACKETS.fullmatch(name):
        return MarsVariant(models, f"MARS, {brackets[1]}", brackets[1])
    return MarsVariant(models, *VARIANTS[name])


def _load(metric: str) -> Callable[..., Metric]:
    module, name = metric.split(".")
    return getattr(import_module(f"{__name__}.{module}"), name)  # type: ignore[no-any-return]


def _check(name: str) -> None:
    if name in METRICS or _BRACKETS.fullmatch(name):
        return
    start, bracket, settings = name.partition("[")
    near = [f"mars[{settings}"] if bracket else get_close_matches(start, METRICS, 1)
    hint = f"did you mean {near[0]!r}?" if near else "mars meta --help lists the names"
    raise ValueError(f"unknown metric {name!r}; {hint}")
