"""The trained encoder: learns, is saved and loaded, goes on after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from safetensors import safe_open

from mars_score.learning import cross_encoder, training
from mars_score.learning.cross_encoder import CrossEncoder
from mars_score.learning.encoder import EncoderHead
from mars_score.learning.losses import ranking_loss, same
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.training import CHECKPOINT, Examples, Trainer, TrainingSettings
from mars_score.scoring.head_folder import read_head
from mars_score.scoring.heads import Example, load_head
from mars_score.settings import resolve_settings
from mars_score.store.runtime import Runtime

WORDS = [
    *("baker", "opens", "shop", "window", "bread", "fishermen", "weather"),
    *("children", "school", "river", "library", "museum", "bridge", "boats"),
]
FAST = TrainingSettings(epochs=4, batch_size=16, learning_rate=3e-3)


def settings(encoder=None):
    return resolve_settings(
        "mini", variant="plus", **EncoderHead.form, encoder=encoder or tiny_models.tiny_encoder(seed=4)
    )


def score_of(head, examples):
    return [sum(term.value * term.weight for term in terms) for terms in head.score(examples)]


def rated(name="rated", count=100, seed=0, within_groups=False):
    """Candidates of eight words, rated by how many of them stand in the first half of WORDS."""
    drawn = np.random.default_rng(seed)
    candidates = [drawn.choice(len(WORDS), 8) for _ in range(count)]
    examples = [
        Example(" ".join(WORDS[index] for index in one), ("the old harbour town",), "wakes early")
        for one in candidates
    ]
    ratings = np.array([(one < len(WORDS) / 2).sum() for one in candidates])
    rows = tuple((one.candidate, one.references, one.context) for one in examples)
    groups = tuple(str(index // 4) for index in range(count))
    return TrainingSet(name, rows, (ratings - ratings.mean()) / ratings.std(), groups, within_groups), examples


@pytest.mark.parametrize(("loss", "within_groups"), [("regression", False), ("pairwise", True)])
def test_learns_ratings(loss, within_groups):
    data, examples = rated(within_groups=within_groups)
    head = EncoderHead(settings(), Runtime(), TrainingSettings(8, 16, 2e-3, patience=8), loss)
    before = np.corrcoef(score_of(head, examples), data.ratings)[0, 1]
    after = np.corrcoef(score_of(head.fit([data], [examples]), examples), data.ratings)[0, 1]
    assert after > before + 0.3


@pytest.fixture(scope="module")
def learned(named_models, tmp_path_factory):
    """A head that has learned, what was saved of it, and its settings, which name the encoder's folder."""
    data, examples = rated(count=40)
    of_file = settings(named_models["encoder"])
    head = EncoderHead(of_file, Runtime(), FAST).fit([data], [examples])
    return head, head.save(tmp_path_factory.mktemp("head")), of_file


def test_a_loaded_head_scores_the_same(learned):
    head, saved, of_file = learned
    assert sorted(one.name for one in saved.path.iterdir()) == ["head.json", "head.safetensors"]
    loaded = load_head(saved.path, of_file, Runtime())
    examples = rated(count=40)[1][:5]
    assert score_of(loaded, examples) == score_of(head, examples)
    assert loaded.fingerprint == head.fingerprint == saved.fingerprint


def test_weights_of_another_encoder_are_refused(learned):
    _, of_learned, of_file = learned
    with pytest.raises(ValueError, match="trained with encoder"):
        load_head(of_learned.path, settings(tiny_models.tiny_encoder(seed=5)), Runtime())
    head = EncoderHead(of_file, Runtime())
    saved = read_head(of_learned.path)
    saved.arrays.pop("layers.rating.weight")
    name = next(name for name in saved.arrays if name.startswith("transformer."))
    saved.arrays[name] = saved.arrays[name][:1]
    with pytest.raises(ValueError, match=f"weights of {name} are missing or of another size"):
        head.start_from(saved)


def _train(folder, pause=0.0):
    """Train with a checkpoint after each step."""
    data, examples = rated(count=60)
    runtime = Runtime(progress=lambda *_: time.sleep(float(pause)))
    head = EncoderHead(settings(), runtime, TrainingSettings(3, 8, 3e-3, 3), "regression", Path(folder))
    return head.fit([data], [examples]).save(folder).fingerprint


@pytest.mark.slow
def test_resumes_after_sigkill_with_the_same_weights(tmp_path, monkeypatch):
    code = "import sys; from test_learning_encoder import _train, training; training.SAVE_SECONDS = -1; "
    killed = subprocess.Popen(
        [sys.executable, "-c", code + "_train(*sys.argv[1:])", str(tmp_path), "0.2"],
        cwd=Path(__file__).parent,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    while not (tmp_path / CHECKPOINT).is_file():
        assert killed.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "head.json").exists()
    with safe_open(tmp_path / CHECKPOINT, "pt") as file:
        assert 0 < json.loads(file.metadata()["state"])["step"] < 21
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert _train(tmp_path) == _train(tmp_path)  # the first goes on from the checkpoint and removes it
    finally:
        torch.set_num_threads(threads)


def linear_trainer(folder, key="", **changes):
    """A line through points, with dropout."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
    points = torch.arange(60.0).reshape(20, 3) / 60

    def loss(batch):
        return (network(points[list(batch)])[:, 0] - points[list(batch), 0]).square().mean()

    examples = Examples([""] * 20, [1] * 20, range(16), range(16, 20))
    return network, Trainer(network, loss, examples, TrainingSettings(5, 4, None, 5, **changes), 0.1, folder, key)


def test_foreign_and_damaged_checkpoints_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SAVE_SECONDS", -1.0)
    _, trainer = linear_trainer(tmp_path)
    trainer._load()
    trainer._step([0, 1], 20)
    trainer._save()
    with pytest.raises(ValueError, match="other data or with other settings"):
        linear_trainer(tmp_path, "other data")[1].train()
    with pytest.raises(ValueError, match="other data or with other settings"):
        linear_trainer(tmp_path, seed=1)[1].train()
    (tmp_path / CHECKPOINT).write_bytes(b"no tensors")
    with pytest.raises(ValueError, match="is damaged"):
        linear_trainer(tmp_path)[1].train()


def test_nothing_is_left_of_a_training_that_was_killed_while_it_saved(tmp_path, monkeypatch):
    def killed(tensors, path, *_):
        Path(path).write_bytes(b"half of a file")
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(training, "save_file", killed)
        with pytest.raises(SystemExit):
            linear_trainer(tmp_path)[1].train()
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(os, "getpid", lambda: 0)  # goes on in another process
    linear_trainer(tmp_path)[1].train()
    assert not list(tmp_path.iterdir())


def test_sequences_are_read_the_same_alone_and_together(monkeypatch):
    network = EncoderHead(settings(), Runtime()).network.eval()
    rows = [(" ".join(WORDS[:count]), " ".join(WORDS[count:]), "the old harbour") for count in (9, 1, 12, 5)]
    with torch.no_grad():
        expected = torch.cat([network.pooled([row]) for row in rows])
        for together in (2, 3, 8):
            monkeypatch.setattr(cross_encoder, "READ_TOGETHER", together)
            assert torch.allclose(network.pooled(rows), expected, atol=1e-5)


def test_an_untrained_encoder_scores_by_the_cosines_of_its_segments():
    network = EncoderHead(settings(), Runtime()).network.eval()
    reference, candidate, context = rows = ("the old harbour", "boats on the river", "bread")
    lengths = list(map(len, network.token_ids(rows)))
    ids = [token for text in network.token_ids(rows) for token in [network._separator, *text]]
    ids = [network._begin, *ids[1:], network._separator]
    types = [0] * (lengths[0] + 2) + [1] * (lengths[1] + 1) + [0] * (lengths[2] + 1)

    def cosine(x, y):
        return float(torch.nn.functional.cosine_similarity(x, y, dim=0))

    with torch.no_grad():
        (states,) = network.read([(ids, types)])
        first, second = lengths[0] + 1, sum(lengths[:2]) + 2
        parts = states[1:first], states[first + 1 : second], states[second + 1 : -1]
        means = [part.mean(0) for part in parts]
        found = network([rows, ("", candidate, context), (reference, candidate, "")])["rating"][:, 0].tolist()
    assert found[0] == pytest.approx(2 * cosine(means[0], means[1]) + cosine(means[1], means[2]), abs=1e-5)
    assert all(one != pytest.approx(found[0]) for one in found[1:])
    assert float(network([("", candidate, "")])["rating"]) == 0.0


def test_outputs_are_centred_before_training():
    network = EncoderHead(settings(), Runtime()).network
    rows = [(one.references[0], one.candidate, one.context) for one in rated(count=20)[1]]
    with network.more_layers({"signal": 2}), torch.no_grad():
        network.centre(rows)
        assert all(abs(values.mean(0)).max() < 1e-5 < values.std() for values in network(rows).values())


def test_training_keeps_the_weights_of_the_lowest_held_out_loss(tmp_path):
    network, trainer = linear_trainer(tmp_path)
    lowest = trainer.train()
    points = torch.arange(60.0).reshape(20, 3) / 60
    network.eval()
    with torch.no_grad():
        found = (network(points[16:])[:, 0] - points[16:, 0]).square().mean()
    assert float(found) == pytest.approx(lowest)


def test_batches_hold_each_example_once_and_keep_pools_together():
    pools = [str(index % 3) for index in range(60)]
    examples = Examples(pools, list(range(60)), range(60))
    import random

    batches = examples.batches(10, random.Random(0))
    assert sorted(index for batch in batches for index in batch) == list(range(60))
    assert all(len({pools[index] for index in batch}) == 1 for batch in batches)
    assert batches == examples.batches(10, random.Random(0)) != examples.batches(10, random.Random(1))


def test_ranking_loss_by_hand():
    scores = torch.tensor([1.0, 0.0, 5.0])
    compared = same(["a", "a", "b"])
    assert compared.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    found = ranking_loss(scores, torch.tensor([0.0, 1.0, 9.0]), compared)  # one pair, in the wrong order
    assert float(found) == pytest.approx(float(np.log1p(np.e)))
    assert float(ranking_loss(scores, torch.zeros(3), compared)) == 0


def test_order_and_padding_do_not_change_scores():
    examples = rated(count=30)[1]
    examples[3] = Example("bread " * 300, ("a very long candidate",), "river " * 400)
    head = EncoderHead(settings(), Runtime(encoder_batch_size=4))
    one_by_one = [score_of(head, [one])[0] for one in examples]
    assert score_of(head, examples) == pytest.approx(one_by_one, abs=1e-5)
    assert score_of(head, examples[::-1]) == pytest.approx(one_by_one[::-1], abs=1e-5)


def test_the_best_of_several_references_counts():
    head = EncoderHead(settings(), Runtime())
    single = [score_of(head, [Example("a shop", (one,), "")])[0] for one in ("bread", "boats on the river")]
    assert score_of(head, [Example("a shop", ("bread", "boats on the river"), "")])[0] == pytest.approx(
        max(single)
    )


def test_a_long_context_shows_the_parts_nearest_to_the_candidate():
    encoder = tiny_models.tiny_encoder(seed=4)
    head = EncoderHead(settings(encoder), Runtime())
    parts = [" ".join([word] * 100) for word in ("boats", "bread", "school", "river")]
    vectors = [encoder.encode(text, normalize_embeddings=True) for text in (*parts, "school bread")]
    order = np.argsort([-float(part @ vectors[-1]) for part in vectors[:-1]])
    assert head.nearest([("school bread", " ".join(parts)), ("x", "short")]) == [
        " ".join(parts[index] for index in order[:2]),
        "short",
    ]


def test_word_embeddings_stay_and_the_shared_encoder_is_not_touched():
    encoder = tiny_models.tiny_encoder(seed=4)
    before = {name: one.clone() for name, one in encoder.named_parameters()}
    data, examples = rated(count=40)
    head = EncoderHead(settings(encoder), Runtime(), FAST).fit([data], [examples])
    assert all(torch.equal(one, before[name]) for name, one in encoder.named_parameters())
    assert not any("word_embeddings" in name for name in head.network.trained())
    assert isinstance(head.network, CrossEncoder)
