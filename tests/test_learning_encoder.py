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
from mars_score.scoring.head_encoder import ALPHA, TEXT_HEADS
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
TEXTS = ("The old harbour town wakes early.", "The baker opens her shop.")


def tiny(encoder=None):
    encoder = encoder or tiny_models.tiny_encoder(seed=4)
    models = {"encoder": encoder, "language_model": tiny_models.tiny_gpt2(1), "entailment_model": None}
    return {"preset": "mini", "variant": "fast", **models}


def head_of(kind="encoder", encoder=None, **runtime):
    return TEXT_HEADS[kind].of(resolve_settings(**tiny(encoder)), Runtime(**runtime))


def loaded(saved, encoder=None):
    return load_head(saved, resolve_settings(**tiny(encoder)), Runtime())


def train(folder, objective="ratings", *, encoder=None, progress=None, **options):
    return train_encoder(MarsScorer(store=False, progress=progress, **tiny(encoder)), folder, objective, **options)


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


def examples_of(rows):
    return [Example(*row[:3]) for row in rows]


def many_sources(count=30):
    drawn = np.random.default_rng(0)
    return [Source(" ".join(drawn.choice(WORDS, 8)), " ".join(drawn.choice(WORDS, 12))) for _ in range(count)]


def cosine(x, y):
    return float(torch.cosine_similarity(x.mean(0), y.mean(0), dim=0))


def test_an_untrained_encoder_scores_by_the_cosines_of_its_segments():
    head = head_of().eval()
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
    head, tokenizer = head_of("ls").eval(), tiny_models.roberta_tokenizer()
    semantic, linguistic = head.score([Example(TEXTS[0], (), TEXTS[1])])[0]
    with torch.no_grad():
        texts = [tokenizer(text, return_tensors="pt") for text in TEXTS]
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
def test_order_and_padding_do_not_change_scores_and_the_best_reference_counts(kind):
    references = ("bread", "boats on the river")
    examples = [
        *examples_of(rated(count=26).rows),
        Example("bread </s> " * 300, ("a very long candidate",), "river " * 400),
        *(Example("a shop", texts, "") for texts in (references[:1], references[1:], references)),
    ]
    head = head_of(kind, encoder_batch_size=4)
    one_by_one = [score_of(head, [example])[0] for example in examples]
    assert score_of(head, examples) == pytest.approx(one_by_one, abs=1e-5)
    assert score_of(head, examples[::-1]) == pytest.approx(one_by_one[::-1], abs=1e-5)
    assert one_by_one[-1] == pytest.approx(max(one_by_one[-3:-1]))


def test_a_long_context_shows_the_parts_nearest_to_the_candidate():
    encoder = tiny_models.tiny_encoder(seed=4)
    parts = [" ".join([word] * 100) for word in ("boats", "bread", "school", "river")]
    *vectors, own = (encoder.encode(text, normalize_embeddings=True) for text in (*parts, "school bread"))
    nearest = np.argsort([-float(vector @ own) for vector in vectors])[:2]
    rows = [Row("school bread", (), " ".join(parts)), Row("x", (), "short")]
    assert head_of(encoder=encoder).nearest(rows) == [" ".join(parts[index] for index in nearest), "short"]


def test_an_encoder_whose_tokenizer_has_no_separator_is_refused():
    encoder = tiny_models.tiny_encoder(seed=4)
    encoder[0].tokenizer.sep_token = None
    with pytest.raises(UnsupportedModelError, match="has no separator between texts"):
        head_of(encoder=encoder)


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
    versions = [[["a", "b", "c"]], ["x"]]
    assert float(ContrastLoss(model)(versions)) == pytest.approx(0.0)
    assert float(ContrastLoss(Outputs([[0.0, 1.0], [0.5, 1.0], [-3.0, 1.0]]))(versions)) == pytest.approx(1.5)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """An encoder that has learned ratings, the encoder that it began with, and the data."""
    data, encoder = rated(), tiny_models.tiny_encoder(seed=4)
    return train(tmp_path_factory.mktemp("head"), encoder=encoder, sets=[data], epochs=8, **QUICK), encoder, data


def test_learns_ratings_and_leaves_the_shared_encoder_alone(learned):
    saved, encoder, data = learned
    before, after = (
        np.corrcoef(score_of(head, examples_of(data.rows)), data.ratings)[0, 1]
        for head in (head_of(encoder=encoder), loaded(saved, encoder))
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
        loaded(saved, tiny_models.tiny_encoder(seed=5))
    arrays = {f"x{name}": array for name, array in saved.arrays.items()}  # as of another release of a library
    about = {"settings": {}, "parameters": {}, "learned_from": []}
    other = write_head(tmp_path, arrays, kind="encoder", models=saved.models, **about)
    with pytest.raises(ValueError, match="the weights are those of another network; train the head again"):
        loaded(other, encoder)


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
        ("pretrain", {**on, "pairs": 40, "encoder": tiny_models.tiny_encoder(9)}, "trained with encoder"),
        ("contrastive", on, "'encoder'; start from one of kind 'ls'"),
        ("contrastive", {}, "nothing to learn from"),
        ("ratings", {"sources": many_sources(10)}, "nothing to learn from"),
    ):
        with pytest.raises(ValueError, match=message):
            train(tmp_path, objective, **options)


@pytest.mark.slow
def test_contrast_prefers_whole_texts(tmp_path):
    sources = [Source(f"the baker opens her shop {source.text}", source.context) for source in many_sources(60)]
    rows = [Row(text, (), of.context) for of in sources for text in (of.text, *contrasts(of, sources, 1))]
    saved = train(
        tmp_path, "contrastive", sources=sources, epochs=6, **{**QUICK, "per_device_train_batch_size": 4}
    )
    before, after = (
        np.reshape(score_of(head, examples_of(rows)), (60, -1)) for head in (head_of("ls"), loaded(saved))
    )
    preferred = [np.mean(scores[:, :1] > scores[:, 1:]) for scores in (before, after)]
    assert preferred[1] > preferred[0] + 0.1


@pytest.mark.slow
def test_pretraining_learns_the_signals(tmp_path):
    sources, settings = many_sources(), resolve_settings(**tiny())
    pairs = make_pairs(with_sentences(sources), 150, Augmenter(settings, Runtime()))
    target = read_signals(pairs, settings, Runtime())["MARS"][:, 0]
    saved = train(tmp_path, "pretrain", sources=sources, epochs=16, pairs=150, **QUICK)
    before, after = (
        np.corrcoef(score_of(head, examples_of(pairs)), target)[0, 1] for head in (head_of(), loaded(saved))
    )
    assert after > before + 0.2


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
    lines = [{"references": [source.text], "context": source.context} for source in many_sources(20)]
    texts = jsonl.write(tmp_path / "texts.jsonl", lines)
    row = {"prediction": "bread", "context": "the river", "reference": "boats"}
    file = jsonl.write(tmp_path / "row.jsonl", [row])
    models = ["--encoder", named_models["encoder"], "--language-model", named_models["language_model"], "--quiet"]
    ls, warm = tmp_path / "ls", tmp_path / "warm"
    for command, message in (
        (["train", texts, "--objective=contrastive", "--epochs=1", "--out", ls], "learned from 20 texts"),
        (
            ["train", texts, "--objective=contrastive", "--from", ls, "--epochs=1", "--out", tmp_path / "x"],
            "20 texts",
        ),
        (["train", texts, "--objective=pretrain", "--pairs=30", "--epochs=1", "--out", warm], "20 texts"),
        (["score", file, "--learned", ls, "--no-references"], "rows 1"),
        (["score", file, "--learned", warm], "rows 1"),
    ):
        code, printed, errors = run(*command, *models)
        assert code == 0, errors
        assert message in printed
    for options, message in (
        (["--head=terms", "--objective=pretrain"], "trains a head encoder: leave --head terms out"),
        (["--from", warm], "--from starts an encoder"),
    ):
        code, _, errors = run("train", texts, *options, "--out", tmp_path / "x", *models)
        assert code == 2
        assert message in errors
