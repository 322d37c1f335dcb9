"""Texts that are no candidates, thousands of words or signs long: they take seconds, and what is cut is said."""

import pytest

from mars_score.data.sentences import sentences
from mars_score.errors import CONTEXT_CUT
from mars_score.models.codec import TextCodec
from mars_score.models.log_probability import TEXT_TOKENS, Reading


def test_a_long_run_without_spaces_is_one_token_of_a_sentence():
    """spaCy's rules for punctuation, which would find a full stop at its end, take half a minute."""
    assert sentences("[" * 20_000 + ". a dog ran. It sat.") == ["[" * 20_000 + ". a dog ran.", "It sat."]


@pytest.mark.parametrize(("tokens", "cut"), [(TEXT_TOKENS, False), (TEXT_TOKENS + 2, True), (2**15, True)])
def test_likelihoods_read_the_beginning_of_a_text(gpt2, tokens, cut):
    codec = TextCodec(gpt2[1])
    text = "car " * (tokens // 2)
    assert len(codec.encode(text.strip())) == tokens
    reading = Reading.of(codec, 10 * TEXT_TOKENS, (), text, None)
    assert (len(reading.tokens), reading.cut) == (min(tokens, TEXT_TOKENS), cut)
    assert f"{TEXT_TOKENS:,} tokens" in CONTEXT_CUT
