"""The plain infiller and the oracle are right by themselves, before anything is compared with them."""

import itertools
import math
from dataclasses import replace

import numpy as np
import oracle
import pytest
import torch
from tiny_models import TEXT, tiny_gpt2

from benchmarks.sequential import (
    SequentialInfiller,
    Tokens,
    best_prefix,
    cut_context,
    encode,
    fit,
    make_prompt,
    reward_of,
    tokenise,
)
from mars_score.augment.masking.analysis import Analysis, Word
from mars_score.augment.masking.template import Template
from mars_score.settings import InfillingSettings, PlanningSettings, SimilaritySettings

CONTEXT = "The old town wakes early in the summer."
REFERENCE = "She waited for the train to get home."
NONE, SELF = PlanningSettings(planner="none"), PlanningSettings(planner="self")
INFILLING = InfillingSettings()


def template(reference: str, *masked: str) -> Template:
    """Mask the words that are named; words are what whitespace separates."""
    words, position = [], 0
    for text in reference.split():
        start = reference.index(text, position)
        position = start + len(text)
        words.append(Word(text, start, position, "X"))
    indices = [index for index, word in enumerate(words) if word.text in masked]
    return Template.from_mask(Analysis(reference, tuple(words)), indices)


MIDDLE = template(REFERENCE, "for", "the", "get")
FIRST = template(REFERENCE, "She", "to")
LAST = template(REFERENCE, "home.")


def infill(context, masked, models, planning=NONE):
    return oracle.infill(context, masked, *models, planning, INFILLING)


class Bigrams:
    """A language model whose next token depends on the last one only."""

    def __init__(self, probabilities):
        self.logits = torch.tensor(probabilities, dtype=torch.float64).log() + 5

    def __call__(self, input_ids):
        return type("Output", (), {"logits": self.logits[input_ids]})


def test_perplexity_by_hand():
    model = Bigrams([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [1e-9, 0.5, 0.5]])
    # prompt 2 0 (not counted); then 0 -> 1: .25, 1 -> 1: .8, 1 -> 2: .1
    expected = (1 / (0.25 * 0.8 * 0.1)) ** (1 / 3)
    assert oracle.perplexity(model, [2, 0], [1, 1, 2]) == pytest.approx(expected, rel=1e-12)


def test_perplexities_are_those_of_whole_texts(causal):
    """With the cache of what was written before, and without; and by the model's own loss, which is in float32."""
    model, tokenizer = causal
    result = infill(CONTEXT, MIDDLE, causal)
    pieces = tokenise(MIDDLE, tokenizer, after_context=True)
    written, blanks = [], iter(result.blanks)
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        if not piece.blank:
            written += piece.ids
            continue
        blank = next(blanks)
        texts = [[*written, *blank.generated[: end + 1], *following.ids] for end in range(len(blank.generated))]
        expected = [oracle.perplexity(model, result.prompt, text) for text in texts]
        assert blank.perplexities == pytest.approx(expected, rel=1e-12)
        assert blank.length == best_prefix(expected, [True] * len(expected))
        written += blank.generated[: blank.length]
    assert next(blanks, None) is None
    with torch.no_grad():
        labels = torch.tensor([[-100] * len(result.prompt) + texts[-1]])
        loss = model(input_ids=torch.tensor([[*result.prompt, *texts[-1]]]), labels=labels).loss
    assert blank.perplexities[-1] == pytest.approx(math.exp(loss), rel=1e-4)


# Self-planning


def test_small_steps_raise_the_reward(llama):
    small = replace(SELF, plan_step=0.01)
    results = [infill(context, masked, llama, small) for masked in (MIDDLE, FIRST) for context in (CONTEXT, "")]
    rewards = [r for result in results for blank in result.blanks for r in blank.rewards if r]
    assert len(rewards) >= 20
    assert all(len(r) == small.plan_iterations + 1 for r in rewards)
    risen = [later >= earlier for r in rewards for earlier, later in itertools.pairwise(r)]
    assert np.mean(risen) > 0.99


def test_gradient_is_the_slope_of_the_reward(causal):
    """With norm exponent 0 one step is step * gradient, so the reward rises by step * |gradient| ** 2."""
    model, tokenizer = causal
    ids, future = encode(tokenizer, CONTEXT), encode(tokenizer, " train")
    step = 1e-5
    raw = replace(SELF, plan_norm_exponent=0.0, plan_step=step, plan_iterations=1)
    infiller = SequentialInfiller(model, tokenizer, raw, INFILLING)
    _, past = infiller.feed(ids[:-1], [])
    _, _, _, [before, after] = infiller.next_scores(ids[-1], past, future)
    leaves = [state.detach().requires_grad_() for state in past]
    reward = reward_of(infiller.feed(ids[-1:], leaves)[0][0], future, raw.plan_temperature)
    slope = sum((gradient**2).sum().item() for gradient in torch.autograd.grad(reward, leaves))
    assert before == pytest.approx(reward.item(), rel=1e-12)
    assert (after - before) / step == pytest.approx(slope, rel=1e-2)


def test_what_is_not_planned_is_plain(causal):
    """A trailing blank, and fusion without the planned distribution."""
    assert infill(CONTEXT, LAST, causal, SELF) == infill(CONTEXT, LAST, causal, NONE)
    unplanned = replace(SELF, plan_fusion=0.0, plan_step=1.0)
    assert infill(CONTEXT, MIDDLE, causal, unplanned).infills == infill(CONTEXT, MIDDLE, causal, NONE).infills


# Prompt and window


def test_prompt(gpt2, llama):
    for (_, tokenizer), begin in ((gpt2, []), (llama, [0])):
        pieces = tokenise(FIRST, tokenizer, after_context=False)
        assert make_prompt([7, 8], pieces, tokenizer) == [*begin, 7, 8]
        assert make_prompt([7], pieces, tokenizer) == [0, 7]  # never an empty cache
        assert make_prompt([], pieces, tokenizer) == [0, 0]
        pieces = tokenise(LAST, tokenizer, after_context=False)
        assert make_prompt([], pieces, tokenizer) == [0]
        assert make_prompt([7], pieces, tokenizer) == [*begin, 7]


def test_context_is_cut_from_its_end(causal, roberta_mlm):
    for _, tokenizer in (causal, roberta_mlm):
        ids = encode(tokenizer, TEXT.strip())
        reference_length = len(encode(tokenizer, " " + REFERENCE))
        cut = cut_context(TEXT, REFERENCE, 96, tokenizer, INFILLING)
        assert cut == ids[: 96 - 2 * reference_length - 64]
        assert 2 < len(cut) < len(ids)
        assert cut_context(TEXT, REFERENCE, 96, tokenizer, InfillingSettings(max_context_tokens=2)) == ids[:2]
        assert cut_context(" \n", REFERENCE, 96, tokenizer, INFILLING) == []
    small = tiny_gpt2(seed=1, n_positions=64)  # nothing is left of the context
    assert infill(CONTEXT, FIRST, small) == infill("", FIRST, small)


@pytest.mark.parametrize(
    ("end", "sizes"),
    [(18, [3, 2, 4, 1]), (17, [3, 2, 4]), (14, [3, 2, 4]), (13, [3, 2, 3]), (10, [3, 2, 0]), (9, [3]), (4, [2])],
)
def test_fit(end, sizes):
    pieces = [Tokens("", [0] * size, blank) for size, blank in ((3, False), (2, True), (4, False), (1, True))]
    assert [len(piece.ids) for piece in fit(pieces, 2, end, extra=3)] == sizes


def test_reference_score(encoder):
    texts = ["The old town.", "A new road.", "Bread and fishermen."]
    cosines = [oracle.cosine(encoder, "My candidate.", text) for text in texts]
    weighted, best = (SimilaritySettings(augmentation_aggregation=how, q=0.5) for how in ("weighted", "best"))
    expected = (cosines[0] + 0.5 * cosines[1] + 0.25 * cosines[2]) / 1.75
    assert oracle.reference_score(encoder, "My candidate.", texts, weighted) == pytest.approx(expected, rel=1e-12)
    # The human reference is the farthest, between, and the nearest.
    by_cosine = sorted(zip(cosines, texts, strict=True))
    for first in range(3):
        ordered = [by_cosine[first], *by_cosine[:first], *by_cosine[first + 1 :]]
        score = oracle.reference_score(encoder, "My candidate.", [text for _, text in ordered], best)
        assert score == pytest.approx((ordered[0][0] + by_cosine[-1][0]) / 2, rel=1e-12)
