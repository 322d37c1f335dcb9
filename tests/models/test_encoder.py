"""Which tokens of a text an encoder's vectors are of, and texts that it does not know."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from mars_score.errors import MarsWarning, ModelUnavailableError, Notice
from mars_score.models.encoder import SentenceEncoder
from mars_score.scorer import MarsScorer
from tests import tiny_models

EMOJI, THAI = "\U0001f600", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01"
PROMPT = {"query": "Find what answers this: "}


@pytest.fixture(scope="module")
def words():
    """An encoder that knows the words of ``tiny_models.TEXT`` only."""
    return tiny_models.tiny_encoder(seed=4, tokenizer=tiny_models.word_tokenizer())


def encode(model, *texts, tokens=True):
    encoded = dict(SentenceEncoder(model).encode(texts, tokens=tokens))
    return [encoded[text] for text in texts]


def test_tokens_of_prompts_and_special_tokens_are_left_out():
    """But the name of a special token within a text is a part of that text."""
    model = tiny_models.tiny_encoder(seed=4)
    texts = ["She took a train.", "", "a</s>b"]
    counts = [len(encoding.tokens) for encoding in encode(model, *texts)]
    assert counts == [len(ids) for ids in model.tokenizer(texts, add_special_tokens=False)["input_ids"]]
    assert counts[1:] == [0, 3]
    model.prompts, model.default_prompt_name = PROMPT, "query"
    assert [len(encoding.tokens) for encoding in encode(model, *texts)] == counts


def test_a_prompt_takes_room():
    model = tiny_models.tiny_encoder(seed=4, n_positions=20)
    text = "the " * 8
    assert not encode(model, text)[0].truncated
    model.prompts, model.default_prompt_name = PROMPT, "query"
    assert encode(model, text)[0].truncated


def test_unknown_tokens_have_vectors_of_zeros(words):
    known, mixed, unknown, none = encode(words, "the old town", f"the {EMOJI} town", f"{EMOJI} zzz", "")
    assert [encoding.unknown for encoding in (known, mixed, unknown, none)] == [0, pytest.approx(1 / 3), 1, 0]
    assert known.tokens.any(1).tolist() == [True] * 3
    assert mixed.tokens.any(1).tolist() == [True, False, True]
    assert not unknown.tokens.any()
    assert not unknown.vector.any()
    assert mixed.vector.any()
    plain = encode(words, f"the {EMOJI} town", f"{EMOJI} zzz", tokens=False)
    assert [encoding.unknown for encoding in plain] == [mixed.unknown, 1]
    np.testing.assert_allclose(plain[0].vector, mixed.vector, atol=1e-12)


def test_byte_level_tokenizers_know_every_text(encoder):
    for one in encode(encoder, THAI, EMOJI):
        assert one.unknown == 0
        assert one.tokens.any(1).all()


@pytest.mark.parametrize("variant", ["fast", "paper"])
def test_what_an_encoder_does_not_know_is_no_match(words, gpt2, variant):
    """Such texts score 0, unless token recall has a candidate that is its reference; a notice counts the rows."""
    settings = {"fast": {"entailment_model": None}, "paper": {"max_mask_ratio": 0}}[variant]
    models = {"encoder": words, "language_model": gpt2, "dtype": "float64"}
    scorer = MarsScorer("mini", variant=variant, store=False, **settings, **models)
    candidates = ["the old town", EMOJI, THAI, EMOJI]
    references = ["the old town", THAI, "the old town", EMOJI]
    with pytest.warns(MarsWarning, match="3 of 4 rows"):
        result = scorer.score(candidates, references, ["", "", "", EMOJI])
    assert [notice for notice in result.notices if Notice.UNKNOWN.message in notice] == [
        f"{Notice.UNKNOWN.message}: 3 of 4 rows (index 1, 2, 3)"
    ]
    assert result.scores[:3] == [pytest.approx(1), 0, 0]
    assert result.row_scores[3].terms[0].value == (1 if variant == "fast" else 0)
    assert result.scores[3] < 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", [{"truncate_dim": 8}, {"max_seq_length": None}, {"max_seq_length": 10**6}])
def test_encoders_that_cut_vectors_or_do_not_know_their_window(tiny_mini, tmp_path, change):
    model = tiny_models.tiny_encoder(seed=4, n_positions=20)
    for name, value in change.items():
        setattr(model, name, value)
    columns = ["She took a train. " * 20, "They lost."], ["A truck took her home."] * 2, ["It was closed."] * 2
    settings = {**tiny_mini, "encoder": model, "store": tmp_path}
    first, stored = (MarsScorer(**settings, variant="fast").score(*columns).scores for _ in range(2))
    assert np.isfinite(first).all()
    assert first == stored
    assert {name: getattr(model, name) for name in change} == change


def test_word_vectors_without_a_tokenizer_of_transformers(tiny_mini):
    tokenizer = tiny_models.word_tokenizer().backend_tokenizer
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    settings = {**tiny_mini, "encoder": model, "store": False}
    columns = ["They lost."], ["She took a train."], ["The road was closed."]
    with pytest.raises(ModelUnavailableError, match="token vectors"):
        MarsScorer(**settings, variant="fast").score(*columns)
    assert -1 <= MarsScorer(**settings, variant="paper", max_mask_ratio=0).score(*columns).score <= 1
