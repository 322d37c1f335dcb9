"""Heads that read the texts: what the networks compute, and training on ratings and on texts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonl
import numpy as np
import pytest
import tiny_models
import torch

from mars_score.data.validation import Row
from mars_score.errors import UnsupportedModelError
from mars_score.learning.encoders import ContrastLoss, EncoderTraining, SignalLoss, train_encoder
from mars_score.learning.pairs import Source, contrasts, make_pairs, with_sentences
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.signals import read_signals
from mars_score.scoring.head_encoder import ALPHA, EncoderHead, LsEncoder, LsHead
from mars_score.scoring.heads import load_head
from mars_score.scoring.row import Example
from mars_score.settings import resolve_settings
from mars_score.store.runtime import Runtime

WORDS = [
    *("baker", "opens", "shop", "window", "bread", "fishermen", "weather"),
    *("children", "school", "river", "library", "museum", "bridge", "boats"),
]
QUICK = {"learning_rate": 2e-3, "per_device_train_batch_size": 8, "load_best_model_at_end": False}
TEXTS = ("The old harbour town wakes early.", "The baker opens her shop.", "It will rain before noon.")


def settings(encoder=None):
    models = {"encoder": encoder or tiny_models.tiny_encoder(seed=4), "language_model": tiny_models.tiny_gpt2(1)}
    return resolve_settings("mini", variant="fast", **models)


def score_of(head, examples):
    return [sum(term.value * term.weight for term in terms) for terms in head.score(examples)]


def rated(count=100):
    """Candidates of eight words, rated by how many of them stand in the first half of WORDS."""
    drawn = np.random.default_rng(0).choice(len(WORDS), (count, 8))
    texts = [" ".join(WORDS[index] for index in of_text) for of_text in drawn]
    ratings = (drawn < len(WORDS) / 2).sum(axis=1)
    rows = tuple(Row(text, ("the old harbour town",), "wakes early") for text in texts)
    groups = tuple(str(index // 4) for index in range(count))
    return TrainingSet("rated", rows, (ratings - ratings.mean()) / ratings.std(), groups)


def examples_of(data):
    return [Example(*row) for row in data.rows]


def many_sources(count=30):
    drawn = np.random.default_rng(0)
    return [Source(" ".join(drawn.choice(WORDS, 8)), " ".join(drawn.choice(WORDS, 12))) for _ in range(count)]


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
    examples = examples_of(rated(count=30))
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


class Outputs:
    """A network that gives the numbers that it is told, in the order of the rows."""

    device, training, quality = "cpu", False, LsEncoder.quality

    def __init__(self, outputs):
        self.scores = torch.tensor(outputs)

    def preprocess(self, inputs):
        return {"rows": torch.arange(len(inputs))}

    def __call__(self, features):
        return {"scores": self.scores[features["rows"]]}


def test_losses_by_hand():
    model = Outputs([[2.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    columns = [[["text"]] * 3, ["a", "b", "c"], ["x"] * 3]
    labels = [torch.tensor(row) for row in ([2.0, 0.0], [0.0, float("nan")], [4.0, 4.0])]
    expected = 9 / 3 + 0.5 * (1 + 9) / 2  # the nan does not count
    assert float(SignalLoss(model, (1.0, 0.5))(columns, labels)) == pytest.approx(expected)
    contrast = ContrastLoss(model)([[["a", "b", "c"]], ["x"]])
    assert float(contrast) == pytest.approx(0.0)
    contrast = ContrastLoss(Outputs([[0.0, 1.0], [0.5, 1.0], [-3.0, 1.0]]))([[["a", "b", "c"]], ["x"]])
    assert float(contrast) == pytest.approx(1.5)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """An encoder that has learned ratings, its settings, and the data."""
    data, of_models = rated(), settings()
    how = EncoderTraining(epochs=8, arguments=QUICK)
    return train_encoder(how, tmp_path_factory.mktemp("head"), of_models, Runtime(), [data]), of_models, data


def test_learns_ratings_and_leaves_the_shared_encoder_alone(learned):
    saved, of_models, data = learned
    before, after = (
        np.corrcoef(score_of(head, examples_of(data)), data.ratings)[0, 1]
        for head in (EncoderHead(of_models, Runtime()), load_head(saved, of_models, Runtime()))
    )
    assert after > before + 0.3
    original = tiny_models.tiny_encoder(seed=4).state_dict()
    assert all(torch.equal(value, original[name]) for name, value in of_models.models.encoder.state_dict().items())
    assert not any("word_embeddings" in name for name in saved.arrays)
    assert sorted(path.name for path in saved.path.iterdir()) == ["head.json", "head.safetensors"]
    assert saved.parameters == {"objective": "ratings", "learning_rate": 2e-3, "seed": 0}
    assert saved.learned_from == [{"name": "rated", "ratings": 100, "groups": 25, "within_groups": False}]


def test_weights_of_another_encoder_are_refused(learned):
    saved, of_models, _ = learned
    with pytest.raises(ValueError, match="trained with encoder"):
        load_head(saved, settings(tiny_models.tiny_encoder(seed=5)), Runtime())
    network, arrays = EncoderHead(of_models, Runtime()).network, dict(saved.arrays)
    name = next(name for name in arrays if name.startswith("0."))
    arrays[name] = arrays[name][:1]
    with pytest.raises(ValueError, match=f"here: the weights of {name} are missing or of another size"):
        network.take(arrays, "here")


def test_training_goes_on_from_a_head_of_its_kind_and_encoder(learned, tmp_path):
    """With a learning rate of 0 it ends where it started, whatever is learned next."""
    saved, of_models, _ = learned
    how = EncoderTraining("pretrain", saved.path, 40, 1, arguments={"learning_rate": 0.0, "weight_decay": 0.0})
    again = train_encoder(how, tmp_path, of_models, Runtime(), sources=many_sources(10))
    assert again.learned_from == saved.learned_from
    changed = {name for name, array in saved.arrays.items() if not np.array_equal(array, again.arrays[name])}
    assert changed <= {"1.linear.bias"}  # pre-training centres it
    for another, encoder, sources, message in (
        (how, tiny_models.tiny_encoder(9), many_sources(10), "trained with encoder"),
        (
            EncoderTraining("contrastive", saved.path),
            None,
            many_sources(10),
            "'encoder'; start from one of kind 'ls'",
        ),
        (EncoderTraining("contrastive"), None, [], "nothing to learn from"),
        (EncoderTraining("ratings"), None, [], "nothing to learn from"),
    ):
        with pytest.raises(ValueError, match=message):
            train_encoder(another, tmp_path, settings(encoder), Runtime(), sources=sources)


@pytest.mark.slow
def test_contrast_prefers_whole_texts(tmp_path):
    sources = [Source("the baker opens her shop " + one.text, one.context) for one in many_sources(60)]
    of_models = settings()

    def preferred(head):
        texts = [(text, one.context) for one in sources for text in (one.text, *contrasts(one, sources, 1))]
        scores = np.reshape(score_of(head, [Example(text, (), context) for text, context in texts]), (60, -1))
        return np.mean(scores[:, :1] > scores[:, 1:])

    before = preferred(LsHead(of_models, Runtime()))
    how = EncoderTraining("contrastive", epochs=6, arguments={**QUICK, "per_device_train_batch_size": 4})
    saved = train_encoder(how, tmp_path, of_models, Runtime(), sources=sources)
    assert preferred(load_head(saved, of_models, Runtime())) > before + 0.1


@pytest.mark.slow
def test_pretraining_learns_the_signals(tmp_path):
    sources, of_models = with_sentences(many_sources()), settings()
    pairs = make_pairs(sources, 150)
    target = read_signals(pairs, of_models, Runtime())["MARS"][:, 0]

    def agreement(head):
        rows = [Example(pair.candidate, (pair.source.text,), pair.source.context) for pair in pairs]
        return np.corrcoef(score_of(head, rows), target)[0, 1]

    how = EncoderTraining("pretrain", epochs=16, pairs=150, arguments=QUICK)
    saved = train_encoder(how, tmp_path, of_models, Runtime(), sources=sources)
    before, after = EncoderHead(of_models, Runtime()), load_head(saved, of_models, Runtime())
    assert agreement(after) > agreement(before) + 0.2


def train_slowly(folder, pause=0.0, steps=None):
    """As another process does it; notes each step."""

    def progress(stage, done, total):
        time.sleep(float(pause))
        (steps or []).append(done)

    how = EncoderTraining(epochs=3, arguments=QUICK)
    return train_encoder(how, folder, settings(), Runtime(progress=progress), [rated(count=60)])


@pytest.mark.slow
def test_goes_on_after_a_kill_and_never_from_a_checkpoint_of_another_training(tmp_path):
    code = "import sys; from test_learning_encoder import train_slowly; train_slowly(*sys.argv[1:])"
    killed = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), "0.3"], cwd=Path(__file__).parent)
    while not list(tmp_path.glob("checkpoints/*/checkpoint-*/trainer_state.json")):
        assert killed.poll() is None
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "head.json").exists()
    steps = [0]
    resumed = train_slowly(tmp_path, steps=steps)
    assert steps[1] > 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["head.json", "head.safetensors"]
    whole = train_slowly(tmp_path / "whole")
    for name, array in whole.arrays.items():
        assert resumed.arrays[name] == pytest.approx(array, abs=1e-5)


def test_mars_train_and_mars_score_with_texts_alone(named_models, tmp_path, run):
    lines = [{"references": [one.text], "context": one.context} for one in many_sources(20)]
    texts = jsonl.write(tmp_path / "texts.jsonl", lines)
    models = ["--encoder", named_models["encoder"], "--language-model", named_models["language_model"], "--quiet"]
    heads = {
        "ls": ["--objective=contrastive"],
        "more": ["--objective=contrastive", "--from", tmp_path / "ls"],
        "warm": ["--objective=pretrain", "--pairs=30"],
    }
    for name, options in heads.items():
        code, printed, errors = run("train", texts, *options, "--epochs=1", "--out", tmp_path / name, *models)
        assert code == 0, errors
        assert "learned from 20 texts" in printed
        assert errors == ""
    row = jsonl.write(
        tmp_path / "row.jsonl", [{"prediction": "bread", "context": "the river", "reference": "boats"}]
    )
    for name, options in (("ls", ["--no-references"]), ("warm", [])):
        code, _, errors = run("score", row, "--learned", tmp_path / name, *options, *models)
        assert code == 0, errors
    for options, message in (
        (["--head=terms", "--objective=pretrain"], "trains a head encoder: leave --head terms out"),
        (["--from", tmp_path / "warm"], "--from starts an encoder"),
    ):
        code, _, errors = run("train", texts, *options, "--out", tmp_path / "x", *models)
        assert code == 2
        assert message in errors
