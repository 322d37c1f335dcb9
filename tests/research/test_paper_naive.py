"""The paper's baseline with a masked language model, against plain forward passes."""

from unittest.mock import patch

import numpy as np
import pytest
import torch

from mars_score import MarsScorer
from mars_score.errors import ModelUnavailableError, UnsupportedModelError
from mars_score.meta.metrics import Models
from mars_score.metrics.paper import PaperConfig, Template
from mars_score.variants import paper_variant
from research.paper_naive import MaskedInfills, Naive
from tests import tiny_models
from tests.meta.metrics.peer_rows import REFERENCES, ROWS


def saved(model, tokenizer, folder):
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """A masked language model with its tokenizer, and their folder."""
    parts = tiny_models.tiny_roberta_mlm(seed=3, dtype=torch.float32)
    return *parts, saved(*parts, tmp_path_factory.mktemp("masked"))


def test_a_masked_model_fills_a_blank_with_its_most_likely_word(masked):
    model, tokenizer, folder = masked
    template = Template("She took a bus.", ((8, 10),))
    [filled] = MaskedInfills(folder)([("It rained.", template)], PaperConfig(), calls=None).values()
    ids = tokenizer(f"It rained. She took{tokenizer.mask_token} bus.")["input_ids"]
    logits = model(torch.tensor([ids])).logits[0, ids.index(tokenizer.mask_token_id)]
    words = [token for token in logits.argsort(descending=True).tolist() if tokenizer.decode(token)[:1] == " "]
    assert filled == (f"She took{tokenizer.decode(words[0])} bus.", False, False)


def cosine(vector, other):
    return vector @ other / np.linalg.norm(vector) / np.linalg.norm(other)


def test_the_naive_baseline_is_mars_with_these_infills(masked, encoder):
    folder, settings = masked[2], {"max_mask_ratio": 0.4, "q": 0.5}
    models = Models(preset="mini", variant="paper", encoder=encoder, store=False, **settings)
    scorer = MarsScorer("mini", variant="paper", encoder=encoder, idf_corpus=REFERENCES, store=False, **settings)
    expected = []
    with patch.object(paper_variant, "infill", MaskedInfills(folder)):
        row_scores = scorer.row_scores(ROWS)
    for row, scored in zip(ROWS, row_scores, strict=True):
        candidate = encoder.encode(row.candidate)
        texts = [reference.augmented.texts for reference in scored.references]
        cosines = [[cosine(candidate, vector) for vector in encoder.encode(same)] for same in texts]
        expected.append(max(np.average(values, weights=[1, 0.5, 0.25]) for values in cosines))
    assert Naive(models, folder).score(ROWS, REFERENCES) == pytest.approx(expected, abs=1e-6)


def test_masked_models_that_cannot_be_used(tmp_path):
    tokenizer = tiny_models.word_tokenizer()
    words, _ = tiny_models.tiny_roberta_mlm(vocab_size=len(tokenizer))
    for name, fault in ((saved(words, tokenizer, tmp_path / "words"), "white space"), (str(tmp_path), "load")):
        with pytest.raises((ModelUnavailableError, UnsupportedModelError), match=fault):
            Naive(Models(preset="mini", variant="paper", store=False), name).score(ROWS, REFERENCES)
