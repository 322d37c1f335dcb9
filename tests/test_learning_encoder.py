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

from mars_score import MarsScorer
from mars_score.augment.augmenter import Augmenter
from mars_score.data.validation import Row
from mars_score.errors import UnsupportedModelError
from mars_score.learning.encoders import ContrastLoss, SignalLoss, train_encoder
from mars_score.learning.pairs import Source, contrasts, make_pairs, read_signals, with_sentences
from mars_score.learning.ratings import TrainingSet
from mars_score.scoring.head_encoder import ALPHA, TEXT_HEADS, EncoderHead, LsHead
from mars_score.scoring.head_folder import write_head
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


def tiny_models_with(encoder=None):
    encoder = encoder or tiny_models.tiny_encoder(seed=4)
    return {"encoder": encoder, "language_model": tiny_models.tiny_gpt2(1), "entailment_model": None}


def settings(encoder=None):
    return resolve_settings("mini", variant="fast", **tiny_models_with(encoder))


def train(folder, objective="ratings", *, encoder=None, progress=None, **options):
    scorer = MarsScorer("mini", variant="fast", store=False, progress=progress, **tiny_models_with(encoder))
    return train_encoder(scorer, folder, objective, **options)


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
    head = EncoderHead.of(settings(), Runtime()).eval()
    rows = ("the old harbour", "boats on the river", "bread")
    ids, end = head.token_ids(rows), head.tokenizer.sep_token_id
    sequence = torch.tensor([[head.tokenizer.cls_token_id, *ids[0], end, *ids[1], end, *ids[2], end]])
    borders = [0, *(place for place, token in enumerate(sequence[0].tolist()) if token == end)]
    with torch.no_grad():
        states = head[0].auto_model(input_ids=sequence).last_hidden_state[0]
        features = head.preprocess([rows, ("", *rows[1:]), (*rows[:2], ""), ("", rows[1], "")])
        scores = head(features)["scores"][:, 0].tolist()
    reference, candidate, context = (states[borders[i] + 1 : borders[i + 1]] for i in range(3))
    assert features["input_ids"][0].tolist() == sequence[0].tolist()
    expected = [2 * cosine(reference, candidate) + cosine(candidate, context), 0.0]
    assert scores[::3] == pytest.approx(expected, abs=1e-5)
    assert all(score != pytest.approx(expected[0]) for score in scores[1:])


def test_ls_score_by_hand():
    head = LsHead.of(settings(), Runtime()).eval()
    semantic, linguistic = head.score([Example(TEXTS[0], (), TEXTS[1])])[0]
    tokenizer = tiny_models.roberta_tokenizer()
    with torch.no_grad():
        texts = [tokenizer(text, return_tensors="pt") for text in TEXTS[:2]]
        states = [head[0].auto_model(**text).last_hidden_state[0] for text in texts]
        hidden = torch.nn.functional.gelu(head[1].linear(states[0][1:-1]))
        of_words = torch.log_softmax(hidden @ head[0].auto_model.get_input_embeddings().weight.T, -1)
        ids = tokenizer(TEXTS[0], add_special_tokens=False)["input_ids"]
        likelihood = np.mean([float(of_words[place, token]) for place, token in enumerate(ids)])
    assert (semantic.value, semantic.weight) == (pytest.approx(cosine(*states), abs=1e-5), 1)
    assert (linguistic.value, linguistic.weight) == (pytest.approx(likelihood, abs=1e-4), ALPHA)
    without_words = head.score([Example("\u200b", (), "")])[0]
    assert without_words[0].value == 0
    assert np.isfinite(without_words[1].value)


@pytest.mark.parametrize("kind", TEXT_HEADS)
def test_order_and_padding_do_not_change_scores(kind):
    examples = examples_of(rated(count=30))
    examples[3] = Example("bread </s> " * 300, ("a very long candidate",), "river " * 400)
    head = TEXT_HEADS[kind].of(settings(), Runtime(encoder_batch_size=4))
    one_by_one = [score_of(head, [example])[0] for example in examples]
    assert score_of(head, examples) == pytest.approx(one_by_one, abs=1e-5)
    assert score_of(head, examples[::-1]) == pytest.approx(one_by_one[::-1], abs=1e-5)


def test_the_best_of_several_references_counts():
    head = EncoderHead.of(settings(), Runtime())
    references = ("bread", "boats on the river")
    single = [score_of(head, [Example("a shop", (reference,), "")])[0] for reference in references]
    assert score_of(head, [Example("a shop", references, "")])[0] == pytest.approx(max(single))


def test_a_long_context_shows_the_parts_nearest_to_the_candidate():
    encoder = tiny_models.tiny_encoder(seed=4)
    parts = [" ".join([word] * 100) for word in ("boats", "bread", "school", "river")]
    *vectors, own = (encoder.encode(text, normalize_embeddings=True) for text in (*parts, "school bread"))
    order = np.argsort([-float(vector @ own) for vector in vectors])
    rows = [Row("school bread", (), " ".join(parts)), Row("x", (), "short")]
    assert EncoderHead.of(settings(encoder), Runtime()).nearest(rows) == [
        " ".join(parts[index] for index in order[:2]),
        "short",
    ]


def test_an_encoder_whose_tokenizer_has_no_separator_is_refused():
    encoder = tiny_models.tiny_encoder(seed=4)
    encoder[0].tokenizer.sep_token = None
    with pytest.raises(UnsupportedModelError, match="has no separator between texts"):
        EncoderHead.of(settings(encoder), Runtime())


class Outputs:
    """A network that gives the numbers that it is told, in the order of the rows."""

    device, training = "cpu", False

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
    """An encoder that has learned ratings, the encoder that it began with, and the data."""
    data, encoder = rated(), tiny_models.tiny_encoder(seed=4)
    folder = tmp_path_factory.mktemp("head")
    return train(folder, encoder=encoder, sets=[data], epochs=8, **QUICK), encoder, data


def test_learns_ratings_and_leaves_the_shared_encoder_alone(learned):
    saved, encoder, data = learned
    before, after = (
        np.corrcoef(score_of(head, examples_of(data)), data.ratings)[0, 1]
        for head in (EncoderHead.of(settings(encoder), Runtime()), load_head(saved, settings(encoder), Runtime()))
    )
    assert after > before + 0.3
    original = tiny_models.tiny_encoder(seed=4).state_dict()
    assert all(torch.equal(value, original[name]) for name, value in encoder.state_dict().items())
    assert not any("word_embeddings" in name for name in saved.arrays)
    assert sorted(path.name for path in saved.path.iterdir()) == ["head.json", "head.safetensors"]
    assert saved.parameters == {"objective": "ratings", "learning_rate": 2e-3, "seed": 0}
    assert saved.learned_from == [{"name": "rated", "ratings": 100, "groups": 25, "within_groups": False}]


def test_weights_of_another_network_are_refused(learned, tmp_path):
    saved, encoder, _ = learned
    with pytest.raises(ValueError, match="trained with encoder"):
        load_head(saved, settings(tiny_models.tiny_encoder(seed=5)), Runtime())
    arrays = {f"x{name}": array for name, array in saved.arrays.items()}  # as of another release of a library
    about = {"settings": {}, "parameters": {}, "learned_from": []}
    other = write_head(tmp_path, arrays, kind="encoder", models=saved.models, **about)
    with pytest.raises(ValueError, match="the weights are those of another network; train the head again"):
        load_head(other, settings(encoder), Runtime())


def test_training_goes_on_from_a_head_of_its_kind_and_encoder(learned, tmp_path):
    """With a learning rate of 0 it ends where it started, whatever is learned next."""
    saved, encoder, _ = learned
    on = {"start": saved.path, "sources": many_sources(10)}
    still = {"pairs": 40, "epochs": 1, "learning_rate": 0.0, "weight_decay": 0.0}
    again = train(tmp_path, "pretrain", encoder=encoder, **on, **still)
    assert again.learned_from == saved.learned_from
    changed = {name for name, array in saved.arrays.items() if not np.array_equal(array, again.arrays[name])}
    assert changed <= {"1.linear.bias"}  # pre-training centres it
    for objective, options, message in (
        ("pretrain", {**on, **still, "encoder": tiny_models.tiny_encoder(9)}, "trained with encoder"),
        ("contrastive", on, "'encoder'; start from one of kind 'ls'"),
        ("contrastive", {}, "nothing to learn from"),
        ("ratings", {"sources": many_sources(10)}, "nothing to learn from"),
    ):
        with pytest.raises(ValueError, match=message):
            train(tmp_path, objective, **options)


@pytest.mark.slow
def test_contrast_prefers_whole_texts(tmp_path):
    sources = [Source("the baker opens her shop " + one.text, one.context) for one in many_sources(60)]

    def preferred(head):
        texts = [(text, one.context) for one in sources for text in (one.text, *contrasts(one, sources, 1))]
        scores = np.reshape(score_of(head, [Example(text, (), context) for text, context in texts]), (60, -1))
        return np.mean(scores[:, :1] > scores[:, 1:])

    before = preferred(LsHead.of(settings(), Runtime()))
    saved = train(
        tmp_path, "contrastive", sources=sources, epochs=6, **{**QUICK, "per_device_train_batch_size": 4}
    )
    assert preferred(load_head(saved, settings(), Runtime())) > before + 0.1


@pytest.mark.slow
def test_pretraining_learns_the_signals(tmp_path):
    sources, of_models = many_sources(), settings()
    pairs = make_pairs(with_sentences(sources), 150, Augmenter(of_models, Runtime()))
    target = read_signals(pairs, of_models, Runtime())["MARS"][:, 0]

    def agreement(head):
        return np.corrcoef(score_of(head, [Example(*row[:3]) for row in pairs]), target)[0, 1]

    saved = train(tmp_path, "pretrain", sources=sources, epochs=16, pairs=150, **QUICK)
    before, after = EncoderHead.of(of_models, Runtime()), load_head(saved, of_models, Runtime())
    assert agreement(after) > agreement(before) + 0.2


def train_slowly(folder, pause=0.0, steps=None):
    """As another process does it; notes each step."""

    def progress(stage, done, total):
        time.sleep(float(pause))
        (steps or []).append(done)

    return train(Path(folder), progress=progress, sets=[rated(count=60)], epochs=3, **QUICK)


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
