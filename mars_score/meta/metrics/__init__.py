"""The metrics that are compared: MARS with its variants, what a user would pick instead, and trivial ones.

A metric is a subclass of :class:`Metric`, a name in ``METRICS`` and a line in
``_peer``. Variants of MARS need no file:
``mars[sigma=0,planner=none]`` is MARS with these settings, with ``references=false`` by the contexts
alone. ``evaluate:NAME_OR_PATH`` is a module of evaluate.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mars_score.meta.metrics.base import Metric, Models

# In the order in which tables show them; variants of MARS with their settings.
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
    "bleu": "",
    "bleu1": "",
    "meteor": "",
    "rouge_l": "",
    "chrf": "",
    "bertscore": "",
    "sentence_mover": "",
    "moverscore": "",
    "perplexity": "",
    "context_perplexity": "",
    "context_cosine": "",
    "context_sentences_cosine": "",
    "length": "",
}
_VARIANT = re.compile(r"mars\[(.*)\]", re.DOTALL)
_MODULE = re.compile(r"evaluate:(.+)", re.DOTALL)


def parse_names(text: str) -> list[str]:
    """Names separated by commas; those within brackets belong to a variant of MARS.

    Raises:
        ValueError: a name that is not known.
    """
    names = [name.strip() for name in re.split(r",(?![^\[]*\])", text) if name.strip()]
    for name in names:
        _check(name)
    return names


def make_metric(name: str, models: Models) -> Metric:
    """The metric of a name: one of :data:`METRICS`, ``mars[setting=value,...]``, or ``evaluate:NAME_OR_PATH``.

    Raises:
        ValueError: an unknown name, or a setting out of range.
        TypeError: an unknown setting.
    """
    _check(name)
    if variant := _VARIANT.fullmatch(METRICS.get(name, name)):
        from mars_score.meta.metrics.mars import Mars

        return Mars(models, name, variant[1])
    if of_evaluate := _MODULE.fullmatch(name):
        from mars_score.meta.metrics.evaluate_module import EvaluateModule

        return EvaluateModule(models, of_evaluate[1])
    return _peer(name)(models)


def _check(name: str) -> None:
    """Raise ValueError for a name that is not known; says which was probably meant."""
    if name in METRICS or _VARIANT.fullmatch(name) or _MODULE.fullmatch(name):
        return
    meant, bracket, changes = name.partition("[")
    near = get_close_matches(meant, METRICS, 1)
    guess = f"mars[{changes}" if bracket else near[0] if near else ""
    if bracket and meant in METRICS and METRICS[meant].startswith("mars["):
        fixed = METRICS[meant][5:-1]
        guess = f"mars[{fixed},{changes}" if fixed else f"mars[{changes}"
    hint = f"did you mean {guess!r}?" if guess else "mars meta --help lists the names"
    raise ValueError(f"unknown metric {name!r}; {hint}")


def _peer(name: str) -> type[Metric]:
    """The class of a metric other than MARS, whose packages are imported with it."""
    from mars_score.meta.metrics import bert, bleu, chrf, cosine, length, likelihood, meteor, mover, rouge, sms

    classes: dict[str, type[Metric]] = {
        "bleu": bleu.Bleu,
        "bleu1": bleu.Bleu1,
        "meteor": meteor.Meteor,
        "rouge_l": rouge.RougeL,
        "chrf": chrf.Chrf,
        "bertscore": bert.BertScore,
        "sentence_mover": sms.SentenceMover,
        "moverscore": mover.MoverScore,
        "perplexity": likelihood.Perplexity,
        "context_perplexity": likelihood.ContextPerplexity,
        "context_cosine": cosine.ContextCosine,
        "context_sentences_cosine": cosine.ContextSentencesCosine,
        "length": length.Length,
    }
    return classes[name]
