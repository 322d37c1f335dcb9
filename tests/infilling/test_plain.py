"""The plain infiller is right by itself, before anything is compared with it."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from mars_score.metrics.paper import PaperConfig, TaggedWord, Template, mask_words
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.likelihood import log_probabilities
from tests.oracle_infilling import (
    PlainInfiller,
    allowed_tokens,
    ascend,
    best_prefix,
    encode,
    encode_pieces,
    reward_of,
)

CONTEXT = "The old town wakes early in the summer."
REFERENCE = "She waited for the train to get home."
NONE, SELF = PaperConfig(planner="none"), PaperConfig(planner="self")


def template(*masked: int) -> Template:
    """The words with these indices are masked; words are what whitespace separates."""
    words = [TaggedWord(*match.span(), "X") for match in re.finditer(r"\S+", REFERENCE)]
    return mask_words(REFERENCE, words, masked)


MIDDLE, FIRST, LAST = template(2, 3, 6), template(0, 5), template(7)


def logits_of(model, ids):
    """Logits after each of ``ids``, without a cache."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0]
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def perplexity(model, prompt, written):
    """Of ``written``, given what is before it; the prompt's own tokens do not count."""
    ids = prompt + written
    log_p = torch.log_softmax(logits_of(model, ids), -1)
    total = sum(log_p[index - 1, ids[index]].item() for index in range(len(prompt), len(ids)))
    return math.exp(-total / len(written))


def infill(context, masked, models, config=NONE):
    return PlainInfiller(*models, config).fill(context, masked)


def test_tokens_and_perplexities_are_those_of_whole_texts(causal):
    """With the cache of what was written before, and without; and by the model's own loss, which is in float32."""
    model, tokenizer = causal
    result = infill(CONTEXT, MIDDLE, causal)
    pieces = encode_pieces(MIDDLE, tokenizer, after_context=True)
    written, blanks = [], iter(result.blanks)
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        if not piece.is_blank:
            written += piece.ids
            continue
        blank = next(blanks)
        for end, token in enumerate(blank.generated):
            logits = logits_of(model, [*result.prompt, *written, *blank.generated[:end]])[-1]
            masked = None if end else piece.text
            allowed = allowed_tokens(tokenizer, len(logits), REFERENCE, masked, whole=False)
            assert token == int(logits.masked_fill(~allowed, -math.inf).argmax())
        texts = [[*written, *blank.generated[: end + 1], *following.ids] for end in range(len(blank.generated))]
        expected = [perplexity(model, result.prompt, text) for text in texts]
        assert blank.perplexities == pytest.approx(expected, rel=1e-12)
        assert blank.length == best_prefix(expected, [True] * len(expected))
        written += blank.generated[: blank.length]
    assert next(blanks, None) is None
    with torch.no_grad():
        labels = torch.tensor([[-100] * len(result.prompt) + texts[-1]])
        loss = model(input_ids=torch.tensor([[*result.prompt, *texts[-1]]]), labels=labels).loss
    assert blank.perplexities[-1] == pytest.approx(math.exp(loss), rel=1e-4)


@pytest.mark.parametrize("batch_size", [1, 3, None])
def test_log_probabilities_are_those_of_whole_texts(causal, batch_size):
    """Several texts after a context, contexts of very different lengths, none, and a text without tokens."""
    model, tokenizer = causal
    contexts = ["", "Late.", CONTEXT, "The boats came in before noon, and the shop was full. " * 2]
    pairs = [
        (context, text) for context in contexts for text in (REFERENCE, "home", "She waited. " * 3, REFERENCE)
    ]
    pairs += [("Late.", "She waited. " * count) for count in (13, 14, 15)]  # more than one row of a prompt holds
    language_model = CausalLanguageModel(model, tokenizer)
    computed = dict(log_probabilities(language_model, [*pairs, ("", " ")], batch_size))
    for context, text in pairs:
        mean, truncated = computed[context, text]
        ids = encode(tokenizer, context.strip())
        prompt = [tokenizer.bos_token_id, *ids] if language_model.codec.adds_begin or not ids else ids
        written = encode(tokenizer, f" {text.strip()}" if context else text.strip())
        assert not truncated
        assert math.exp(-mean) == pytest.approx(perplexity(model, prompt, written), rel=1e-9)
    assert computed["", " "] == (-math.inf, False)


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
    infiller = PlainInfiller(model, tokenizer, raw)
    _, past = infiller.run(ids[:-1], [])
    _, _, [before, after] = infiller.next_scores(ids[-1], past, future)
    leaves = [state.detach().requires_grad_() for state in past]
    reward = reward_of(infiller.run(ids[-1:], leaves)[0][0], future, raw.plan_temperature)
    slope = sum((gradient**2).sum().item() for gradient in torch.autograd.grad(reward, leaves))
    assert before == pytest.approx(reward.item(), rel=1e-12)
    assert (after - before) / step == pytest.approx(slope, rel=1e-2)


def test_a_step_is_as_long_as_eta_over_all_layers():
    """Eq. 6 has one norm; PPLM's is one for each layer."""
    states, gradients = torch.randn(2, 6, 2, 4, 3, 5, dtype=torch.float64, generator=torch.manual_seed(0))
    moved = torch.stack(ascend([*states], [*gradients], SELF)) - states
    assert moved.norm().item() == pytest.approx(SELF.plan_step, rel=1e-12)
    assert torch.allclose(moved, gradients * SELF.plan_step / gradients.norm(), rtol=1e-9)


def test_what_is_not_planned_is_plain(causal):
    """A trailing blank, and fusion without the planned distribution."""
    assert infill(CONTEXT, LAST, causal, SELF) == infill(CONTEXT, LAST, causal, NONE)
    unplanned = replace(SELF, plan_fusion=0.0, plan_step=1.0)
    assert infill(CONTEXT, MIDDLE, causal, unplanned).infills == infill(CONTEXT, MIDDLE, causal, NONE).infills
