"""The whole path with models as the Hub has them: folders of GPT-2 and RoBERTa, by ``save_pretrained``."""

import copy
import json

import pytest
import torch
from transformers import AutoTokenizer

from mars_score import MarsScorer
from mars_score.errors import Notice
from mars_score.presets import PRESETS
from tests import oracle_forms, tiny_models
from tests.jsonl import columns
from tests.oracle_infilling import infilled

CONTEXT = "The old harbour town wakes early in the summer."
ROWS = [
    ("The caf\u00e9 opens at six \U0001f600.", ["The baker opens her shop."], CONTEXT),
    ("Nobody came.", ["They wait on the bridge, and it rains."], " ".join([CONTEXT] * 90)),  # over 1,024 tokens
    ("She waited. " * 200, ["He forgot his ticket at home."], ""),  # over 512 tokens
]
SETTINGS = {"variant": "paper", "max_mask_ratio": 0.4, "plan_iterations": 1, "sigma": 1, "dtype": "float64"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """GPT-2 without a pad token and with 1,024 positions; RoBERTa with 514, of which two are the padding's."""
    folder = tmp_path_factory.mktemp("hub")
    tokenizer = copy.deepcopy(tiny_models.causal_tokenizer())
    tokenizer.pad_token, tokenizer.model_max_length = None, 1024
    model, _ = tiny_models.tiny_gpt2(3, torch.float32, 1024, tokenizer, pad_token_id=None)
    for part in (model, tokenizer):
        part.save_pretrained(folder / "gpt2")
    tiny_models.tiny_encoder(seed=5, dtype=torch.float32, n_positions=512).save(str(folder / "roberta"))
    loaded = AutoTokenizer.from_pretrained(folder / "gpt2")
    sizes = [json.loads((folder / path).read_text()) for path in ("gpt2/config.json", "roberta/config.json")]
    assert (loaded.pad_token, loaded.model_max_length) == (None, 1024)
    assert (sizes[0]["n_positions"], sizes[1]["max_position_embeddings"]) == (1024, 514)
    return {"language_model": str(folder / "gpt2"), "encoder": str(folder / "roberta")}


@pytest.fixture(scope="module")
def expected(folders, pipeline):
    """The scores by the plain forms: one text and one token at a time."""
    scorer = MarsScorer(**folders, **SETTINGS, store=False)
    model, encoder = scorer.calls.language_model(), scorer.calls.encoder()
    models, config = (model.model, model.codec.tokenizer), scorer.settings.config
    corpus = [reference for _, [reference], _ in ROWS]
    scores = []
    for candidate, [reference], context in ROWS:
        shown = oracle_forms.templates(reference, context, corpus, pipeline, (2, 4))
        written = [infilled(models, config, context, reference, template) for template in shown]
        scores += oracle_forms.paper(encoder, candidate.strip(), [[reference, *written]])
    return scores


@pytest.mark.parametrize("preset", ["base", "paper"])
def test_scores_are_those_of_the_plain_forms(folders, expected, preset, monkeypatch):
    for kind, folder in folders.items():
        monkeypatch.setitem(PRESETS[preset], kind, folder)
    result = MarsScorer(preset, **SETTINGS).score(*columns(ROWS))
    assert result.scores == pytest.approx(expected, rel=1e-9)
    cut = [row.notices & {Notice.CONTEXT_CUT, Notice.TEXT_CUT} for row in result.row_scores]
    assert cut == [set(), {Notice.CONTEXT_CUT}, {Notice.TEXT_CUT}]


@pytest.mark.parametrize(
    ("count", "settings", "noticed"), [(9, {}, True), (10, {}, False), (9, {"idf_corpus": 10}, False)]
)
def test_few_references_for_idf_are_noticed(folders, few_references, count, settings, noticed):
    texts = [f"The baker opens shop number {number}." for number in range(10)]
    corpus = {name: texts[:size] for name, size in settings.items()}
    scorer = MarsScorer(variant="paper", **folders, planner="none", max_mask_ratio=0.2, **corpus)
    result = scorer.score(["Nobody came."] * count, texts[:count], [CONTEXT] * count)
    assert [Notice.FEW_DOCUMENTS in row.notices for row in result.row_scores] == [noticed] * count
