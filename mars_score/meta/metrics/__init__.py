"""The metrics that are compared: MARS with its variants, what a user would pick instead, and trivial ones.

A metric is one file with one subclass of :class:`Metric`, and one line here. Variants of MARS need no file:
``mars[sigma=0,planner=none]`` is MARS with these settings, with ``references=false`` by the contexts
alone. ``evaluate:NAME_OR_PATH`` is a module of evaluate.
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
    "mars_paper": "mars[variant=paper]",
    "mars_plus": "mars[variant=plus]",
    "mars_fast": "mars[variant=fast]",
    "mars_no_context": "mars[use_context=false]",
    "mars_no_references": "mars[variant=plus,references=false]",
    "mars_fast_no_references": "mars[variant=fast,references=false]",
    "mars_no_planning": "mars[variant=paper,planner=none]",
    "mars_naive": "mars[variant=paper,planner=self,infiller=masked]",
    "reference_cosine": "mars[variant=paper,max_mask_ratio=0,strip_urls_hashtags=false]",
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
