"""Heads that read the texts: what the networks compute, and how they are saved."""

import jsonl
import numpy as np
import pytest
import tiny_models
import torch

from mars_score.errors import UnsupportedModelError
from mars_score.models.fingerprints import fingerprint
from mars_score.scoring.head_encoder import ALPHA, EncoderHead, LsHead
from mars_score.scoring.head_folder import write_head
from mars_score.scoring.heads import load_head
from mars_score.scoring.row import Example
from mars_score.settings import resolve_settings
from mars_score.store.runtime import Runtime

WORDS = [
    *("baker", "opens", "shop", "window", "bread", "fishermen", "weather"),
    *("children", "school", "river", "library", "museum", "bridge", "boats"),
]
TEXTS = ("The old harbour town wakes early.", "The baker opens her shop.", "It will rain before noon.")


def settings(encoder=None):
    models = {"encoder": encoder or tiny_models.tiny_encoder(seed=4), "language_model": tiny_models.tiny_gpt2(1)}
    return resolve_settings("mini", variant="fast", **models)


def score_of(head, examples):
    return [sum(term.value * term.weight for term in terms) for terms in head.score(examples)]


def some_examples(count=30):
    drawn = np.random.default_rng(0).choice(len(WORDS), (count, 8))
    texts = (" ".join(WORDS[index] for index in of_text) for of_text in drawn)
    return [Example(text, ("the old harbour town",), "wakes early") for text in texts]


def cosine(x, y):
    return float(torch.cosine_similarity(x.mean(0), y.mean(0), dim=0))


def test_an_untrained_encoder_scores_by_the_cosines_of_its_segments():
    network = EncoderHead(settings(), Runtime()).network.eval()
    rows = ("the old harbour", "boats on the river", "bread")
    ids = network.token_ids(rows)
    tokenizer = network.tokenizer
    end = tokenizer.sep_token_id
    sequence = torch.tensor([[tokenizer.cls_token_id, *ids[0], end, *ids[1], end, *ids[2], end]])
    borders = [0, *(place for place, token in enumerate(sequence[0].tolist()) if token == end)]
    with torch.no_grad():
        states = network[0].auto_model(input_ids=sequence).last_hidden_state[0]
        reference, candidate, context = (states[borders[i] + 1 : borders[i + 1]] for i in range(3))
        variants = [rows, ("", *rows[1:]), (*rows[:2], ""), ("", rows[1], "")]
        features = network.preprocess(variants)
        scores = network(features)["scores"][:, 0].tolist()
    expected = 2 * cosine(reference, candidate) + cosine(candidate, context)
    assert features["input_ids"][0].tolist() == sequence[0].tolist()
    assert scores[0] == pytest.approx(expected, abs=1e-5)
    assert all(score != pytest.approx(expected) for score in scores[1:])
    assert scores[3] == 0.0


def test_ls_score_by_hand():
    head = LsHead(settings(), Runtime())
    semantic, linguistic = head.score([Example(TEXTS[0], (), TEXTS[1])])[0]
    tokenizer, network = tiny_models.roberta_tokenizer(), head.network.eval()
    with torch.no_grad():
        texts = [tokenizer(text, return_tensors="pt") for text in TEXTS[:2]]
        states = [network[0].auto_model(**text).last_hidden_state[0] for text in texts]
        hidden = torch.nn.functional.gelu(network[1].linear(states[0][1:-1]))
        of_words = torch.log_softmax(hidden @ network[0].auto_model.get_input_embeddings().weight.T, -1)
        ids = tokenizer(TEXTS[0], add_special_tokens=False)["input_ids"]
        likelihood = np.mean([float(of_words[place, token]) for place, token in enumerate(ids)])
    assert (semantic.value, semantic.weight) == (pytest.approx(cosine(*states), abs=1e-5), 1)
    assert (linguistic.value, linguistic.weight) == (pytest.approx(likelihood, abs=1e-4), ALPHA)
    without_words = head.score([Example("\u200b", (), "")])[0]
    assert without_words[0].value == 0
    assert np.isfinite(without_words[1].value)


@pytest.mark.parametrize("cls", [EncoderHead, LsHead])
def test_order_and_padding_do_not_change_scores(cls):
    examples = some_examples()
    examples[3] = Example("bread </s> " * 300, ("a very long candidate",), "river " * 400)
    head = cls(settings(), Runtime(encoder_batch_size=4))
    one_by_one = [score_of(head, [example])[0] for example in examples]
    assert score_of(head, examples) == pytest.approx(one_by_one, abs=1e-5)
    assert score_of(head, examples[::-1]) == pytest.approx(one_by_one[::-1], abs=1e-5)


def test_the_best_of_several_references_counts():
    head = EncoderHead(settings(), Runtime())
    references = ("bread", "boats on the river")
    single = [score_of(head, [Example("a shop", (reference,), "")])[0] for reference in references]
    assert score_of(head, [Example("a shop", references, "")])[0] == pytest.approx(max(single))


def test_a_long_context_shows_the_parts_nearest_to_the_candidate():
    encoder = tiny_models.tiny_encoder(seed=4)
    parts = [" ".join([word] * 100) for word in ("boats", "bread", "school", "river")]
    *vectors, own = (encoder.encode(text, normalize_embeddings=True) for text in (*parts, "school bread"))
    order = np.argsort([-float(vector @ own) for vector in vectors])
    shown = EncoderHead(settings(encoder), Runtime()).nearest([("school bread", " ".join(parts)), ("x", "short")])
    assert shown == [" ".join(parts[index] for index in order[:2]), "short"]


def test_an_encoder_whose_tokenizer_has_no_separator_is_refused():
    encoder = tiny_models.tiny_encoder(seed=4)
    encoder[0].tokenizer.sep_token = None
    with pytest.raises(UnsupportedModelError, match="has no separator between texts"):
        EncoderHead(settings(encoder), Runtime())


def save(head, folder, of_models):
    """The head as a folder, its weights doubled as if they were learned."""
    return write_head(
        folder,
        {name: 2 * array for name, array in head.network.trained().items()},
        kind=head.kind,
        models={"encoder": str(fingerprint(of_models.models.encoder))},
        settings={"variant": "fast"},
        parameters={},
        learned_from=[],
    )


@pytest.mark.parametrize("cls", [EncoderHead, LsHead])
def test_a_saved_head_has_its_own_weights_and_leaves_the_shared_encoder_alone(cls, tmp_path):
    of_models = settings()
    saved = save(cls(of_models, Runtime()), tmp_path, of_models)
    loaded = load_head(saved, of_models, Runtime())
    weights = loaded.network.trained()
    assert weights.keys() == saved.arrays.keys()
    assert all(np.array_equal(array, saved.arrays[name]) for name, array in weights.items())
    assert score_of(loaded, some_examples()) != score_of(cls(of_models, Runtime()), some_examples())
    original = tiny_models.tiny_encoder(seed=4).state_dict()
    assert all(torch.equal(value, original[name]) for name, value in of_models.models.encoder.state_dict().items())
    assert not any("word_embeddings" in name for name in saved.arrays)


def test_weights_of_another_encoder_are_refused(tmp_path):
    of_models = settings()
    network = EncoderHead(of_models, Runtime()).network
    saved = save(EncoderHead(of_models, Runtime()), tmp_path, of_models)
    with pytest.raises(ValueError, match="trained with encoder"):
        load_head(saved, settings(tiny_models.tiny_encoder(seed=5)), Runtime())
    arrays = dict(saved.arrays)
    name = next(name for name in arrays if name.startswith("0."))
    arrays[name] = arrays[name][:1]
    with pytest.raises(ValueError, match=f"here: the weights of {name} are missing or of another size"):
        network.take(arrays, "here")


@pytest.mark.parametrize(("cls", "options"), [(EncoderHead, []), (LsHead, ["--no-references"])])
def test_mars_score_with_a_saved_head(cls, options, named_models, tmp_path, run):
    of_models = resolve_settings("mini", variant="fast", **named_models)
    saved = save(cls(of_models, Runtime()), tmp_path / "head", of_models)
    row = {"prediction": "bread", "context": "the river", "reference": "boats"}
    rows = jsonl.write(tmp_path / "row.jsonl", [row])
    models = [f"--{name.replace('_', '-')}={value}" for name, value in named_models.items()]
    code, printed, errors = run("score", rows, "--learned", saved.path, *options, *models, "--quiet")
    assert code == 0, errors
    assert f"learned:{saved.fingerprint}" in printed
