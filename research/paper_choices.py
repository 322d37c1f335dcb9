"""What each choice that the paper leaves open changes, on samples of rated sets (see :mod:`research.paper`).

Each choice is changed alone. Measured are the share of masks that change, over all references of a set, and on a
sample without planner the share of infills that change and the difference of Pearson's r with the ratings.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest.mock import patch

import numpy as np
import torch

from mars_score import MarsScorer
from mars_score.infilling import batched, planning
from mars_score.infilling.jobs import FilledTemplate, JobState, TemplateInContext
from mars_score.language import Tagger
from mars_score.meta.sets import RatedSet, read_rated_set
from mars_score.metrics import paper
from mars_score.metrics.paper import Idf, PaperConfig
from mars_score.models.calls import ModelCalls
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.settings import resolve_settings
from mars_score.variants import paper_variant

# Contexts of the sample of a set for infills, or 0 to compare masks alone.
MEASURED = {"newsroom": 0, "openmeva_roc": 3, "evouna_nq": 12, "evouna_tq": 0}
PLANNED_CONTEXTS = 6  # with the planner, which takes long
FEWEST = 50  # rows that r needs to be meaningful
Patch = AbstractContextManager[object]
Texts = dict[tuple[str, str], list[str]]  # by context and reference


class Choice(NamedTuple):
    """What is changed: settings, or a patch of the code."""

    settings: Mapping[str, Any] = {}
    change: Callable[[], Patch] = nullcontext
    infilling: bool = False  # whether the patch is of the code that fills blanks


def other_idf() -> Patch:
    """Let IDF be log(1 + M / df)."""
    return patch.object(
        Idf, "__getitem__", lambda idf, word: math.log1p(max(idf.documents, 1) / max(idf.frequencies[word], 1))
    )


def idf_of_wordfreq() -> Patch:
    """Derive document frequencies from the word frequencies of wordfreq 3.1, for texts of 30 words."""
    from wordfreq import word_frequency

    def idf(_: Idf, word: str) -> float:
        listed = any(map(str.isalnum, word))  # wordfreq does not list punctuation
        frequency = word_frequency(word, "en", wordlist="small", minimum=5e-7) if listed else 1 - 1e-6
        return -math.log(min(-math.expm1(30 * math.log1p(-frequency)), 1 - 1e-4))

    return patch.object(Idf, "__getitem__", idf)


def no_least_budget() -> Patch:
    """Round budgets down, even to no word."""
    exact = paper.knapsack
    ratios = paper.mask_ratios(0.6, 0.2)

    def knapsack(priorities: Sequence[int], costs: Sequence[int], _: Sequence[int]) -> list[tuple[int, ...]]:
        return exact(priorities, costs, [math.floor(ratio * len(priorities) + 1e-9) for ratio in ratios])

    return patch.object(paper, "knapsack", knapsack)


def sampled() -> Patch:
    """Sample tokens at temperature xi by Gumbel noise, instead of taking the best."""
    generator, exact = torch.Generator().manual_seed(0), planning.plain_step

    def plain_step(*arguments: Any) -> planning.Step:
        step = exact(*arguments)
        noise = -torch.empty_like(step.scores).exponential_(generator=generator).log()
        return planning.Step(step.plain, step.scores / PaperConfig().plan_temperature + noise, step.states)

    return patch.object(batched, "plain_step", plain_step)


def any_token() -> Patch:
    """Allow line breaks, and a first token that does not begin a word."""
    exact = batched.Drafter.__init__

    def init(drafter: batched.Drafter, *arguments: Any) -> None:
        exact(drafter, *arguments)
        drafter._allowed = drafter._allowed[[3] * 6 + [9] * 6]

    return patch.object(batched.Drafter, "__init__", init)


def whole_sequence() -> Patch:
    """Choose by the perplexity of the context and the reference together."""
    known: dict[tuple[int, ...], float] = {}
    exact = batched._Run._place

    def of_prompt(model: CausalLanguageModel, prompt: tuple[int, ...]) -> float:
        tokens = model.tensor(prompt)
        logits = model.model(input_ids=tokens[None], attention_mask=torch.ones_like(tokens[None])).logits[0, :-1]
        return float(torch.log_softmax(logits.double(), -1).gather(1, tokens[1:, None]).sum())

    def place(run: batched._Run, state: JobState, *arguments: Any) -> None:
        prompt = state.job.prompt
        if not state.filled and len(prompt) > 1:  # the job has just started
            if prompt not in known:
                known[prompt] = of_prompt(run.model, prompt)
            state.log_probability += known[prompt]
            state.count += len(prompt) - 1
        exact(run, state, *arguments)

    return patch.object(batched._Run, "_place", place)


def norm_of_layers() -> Patch:
    """Normalise the gradient of each layer by itself, as PPLM does."""

    def climb(logits: Any, gradient: Any, changes: Sequence[Any], config: PaperConfig) -> None:
        targets = [target for change in changes for target in (change.scores, change.output)]
        gradients = torch.autograd.grad(logits, targets, gradient)
        for change, scores, output in zip(changes, gradients[::2], gradients[1::2], strict=True):
            norm = change.squared_norm(scores, output).clamp(min=0).sqrt()
            length = config.plan_step / (norm**config.plan_norm_exponent + planning.EPSILON)
            change.climb(scores, output, length[:, None, None, None])

    return patch.object(planning, "_climb", climb)


# Choices of what is masked.
MASKING = {
    "IDF log(1 + M / df)": Choice(change=other_idf),
    "IDF of one reference alone": Choice({"idf_corpus": ["one"]}),
    **({"IDF by wordfreq": Choice(change=idf_of_wordfreq)} if find_spec("wordfreq") else {}),
    "W_max may be 0": Choice(change=no_least_budget),
    "words as they are written": Choice({"lower_words": False}),
    "proper nouns weigh 1": Choice({"pos_weights": {"ADJ": 4.0, "ADV": 3.0, "NOUN": 2.0}}),
}
CHOICES = {
    **MASKING,
    "sampled at xi": Choice({}, sampled, infilling=True),
    "perplexity with the context": Choice({}, whole_sequence, infilling=True),
    "any token": Choice({}, any_token, infilling=True),
    "sigma = 0": Choice({"sigma": 0}),
    "sigma = 6": Choice({"sigma": 6}),
    "q = .5": Choice({"q": 0.5}),
    "q = 1": Choice({"q": 1.0}),
}
PLANNED = {
    "planner": Choice({"planner": "self"}),
    "planner, norm of each layer": Choice({"planner": "self"}, norm_of_layers, infilling=True),
}


class Outcome(NamedTuple):
    """The result of a choice: Pearson's r, and the infills of each (context, reference)."""

    r: float
    infills: Texts


def masks(rated: RatedSet, choice: Choice) -> Texts:
    """Return the templates of each (context, reference) under a choice."""
    settings = {"idf_corpus": rated.corpus, **choice.settings}
    config, tagger = cast(PaperConfig, resolve_settings("mini", "paper", **settings).config), Tagger()
    pairs = dict.fromkeys((row.prompt, text) for row in rated.rows for text in row.references)
    words = tagger.tag(text for _, text in pairs)
    context_words = tagger.words((context for context, _ in pairs), lower=config.lower_words)
    with choice.change():
        idf = Idf.count(tagger.words(config.idf_corpus or (), lower=config.lower_words).values())
        return {
            (context, text): [
                str(template)
                for _, template in paper.make_templates(text, words[text], context_words[context], idf, config)
            ]
            for context, text in pairs
        }


def outcome(rated: RatedSet, calls: ModelCalls, choice: Choice) -> Outcome:
    """Score a set under a choice."""
    settings = {"planner": "none", "idf_corpus": rated.corpus, **choice.settings}
    scorer = MarsScorer("mini", variant="paper", **settings)
    scorer.calls = calls
    anew = patch.object(paper_variant, "infill", infill_anew) if choice.infilling else nullcontext()
    with choice.change(), anew:
        rows = scorer.row_scores(rated.rows)
    infills = {
        (row.prompt, reference.augmented.reference): [infill.text for infill in reference.augmented.infills]
        for row, scored in zip(rated.rows, rows, strict=True)
        for reference in scored.references
    }
    return Outcome(float(np.corrcoef([row.score for row in rows], rated.ratings)[0, 1]), infills)


def infill_anew(
    pairs: Sequence[TemplateInContext], config: PaperConfig, calls: ModelCalls
) -> dict[TemplateInContext, FilledTemplate]:
    """Fill blanks without the store, which keeps the infills of the unchanged code."""
    return dict(batched.BatchedInfiller(calls.language_model(), config, calls.runtime.batch_size).infill(pairs))


def share(texts: Texts, others: Texts) -> float:
    """Return the share of texts that differ."""
    pairs = [pair for key in texts for pair in zip(texts[key], others[key], strict=True)]
    return round(sum(text != other for text, other in pairs) / len(pairs), 3)


def compare(rated: RatedSet, choices: Mapping[str, Choice]) -> dict[str, dict[str, float | None]]:
    """Return for each choice the share of infills that it changes, and the difference of r."""
    calls = MarsScorer("mini", variant="paper").calls
    before, found = outcome(rated, calls, Choice()), {}
    for name, choice in choices.items():
        after = outcome(rated, calls, choice)
        more = round(after.r - before.r, 3) if len(rated.rows) >= FEWEST else None
        found[name] = {"infills": share(before.infills, after.infills), "r": more}
        print(rated.name, name, found[name], flush=True)
    return found


def longer(rated: RatedSet, limit: int) -> float:
    """Return the share of contexts with more than ``limit`` tokens of the language model."""
    codec = MarsScorer("mini", variant="paper").calls.language_model().codec
    counts = [len(codec.encode_context(context)) for context in dict.fromkeys(row.context for row in rated.rows)]
    return round(float(np.mean([count > limit for count in counts])), 3)


def measure(folder: Path, names: Sequence[str], target: Path) -> None:
    """Measure the choices on the named sets of :data:`MEASURED`, and add them to the target."""
    kept = json.loads(target.read_text(encoding="utf-8"))
    for name in [known for known in MEASURED if known in names]:
        rated = read_rated_set(folder / f"{name}.jsonl")
        rated = rated.where([bool(row.candidate) for row in rated.rows])
        usual = masks(rated, Choice())
        masked = {choice: share(usual, masks(rated, changed)) for choice, changed in MASKING.items()}
        masked |= {f"contexts over {limit:,} tokens": longer(rated, limit) for limit in (1024, 2048)}
        print(name, masked, flush=True)
        sample = rated.sample(MEASURED[name])
        measured = compare(sample, CHOICES) if MEASURED[name] else {}
        if name == "evouna_nq":
            measured |= compare(rated.sample(PLANNED_CONTEXTS), PLANNED)
        kept.setdefault("choices", {})[name] = {"masks": masked, "rows": len(sample.rows), "infills": measured}
        target.write_text(json.dumps(kept) + "\n", encoding="utf-8")
