"""Texts that are no candidates, thousands of words or signs long: they take seconds, and what is cut is said."""

import pytest

from mars_score.errors import Notice
from mars_score.models.codec import TextCodec
from mars_score.models.likelihood import MAX_TEXT_TOKENS, PromptedText
from mars_score.sentences import sentences


def test_a_long_run_without_spaces_is_one_token_of_a_sentence():
    """spaCy's rules for punctuation, which would find a full stop at its end, take half a minute."""
    assert sentences("[" * 20_000 + ". a dog ran. It sat.") == ["[" * 20_000 + ". a dog ran.", "It sat."]


@pytest.mark.parametrize(
    ("tokens", "truncated"), [(MAX_TEXT_TOKENS, False), (MAX_TEXT_TOKENS + 2, True), (2**15, True)]
)
def test_likelihoods_are_of_the_beginning_of_a_text(gpt2, tokens, truncated):
    codec = TextCodec(gpt2[1])
    text = "car " * (tokens // 2)
    assert len(codec.encode(text.strip())) == tokens
    prompted = PromptedText.of(codec, 10 * MAX_TEXT_TOKENS, (), text, None)
    assert (len(prompted.tokens), prompted.truncated) == (min(tokens, MAX_TEXT_TOKENS), truncated)
    assert f"{MAX_TEXT_TOKENS:,} tokens" in Notice.CONTEXT_CUT.message
