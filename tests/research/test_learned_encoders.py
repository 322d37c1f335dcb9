"""Heads that read the texts: what the networks compute, and training on ratings and on texts."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest
import torch

from mars_score import MarsScorer
from mars_score.errors import HeadError, UnsupportedModelError
from mars_score.heads import write_head
from mars_score.models.calls import ModelCalls
from mars_score.models.running import Runtime
from mars_score.rows import Row
from mars_score.settings import resolve_settings
from mars_score.training import TrainingSet
from research.learned_encoders.__main__ import main
from research.learned_encoders.pairs import Source, compute_signals, contrasts, make_pairs, with_sentences
from research.learned_encoders.text_heads import ALPHA, TEXT_HEADS, TextFeatures, load_text_head
from research.learned_encoders.train_encoders import (
    ContrastLoss,
    SignalLoss,
    TrainingOptions,
    train_on_contrasts,
    train_on_pairs,
    train_on_ratings,
)
from tests import jsonl, tiny_models

WORDS = [
    *("baker", "opens", "shop", "window", "bread", "fishermen", "weather"),
    *("children", "school", "river", "library", "museum", "bridge", "boats"),
]
QUICK = {"learning_rate": 2e-3, "per_device_train_batch_size": 8, "load_best_model_at_end": False}
TEXTS = ("The old harbour town wakes early.", "The baker opens her shop.")


@pytest.fixture(scope="module")
def original():
    """The encoder that training starts from."""
    return tiny_models.tiny_encoder(seed=4)


def settings_of(encoder):
    models = {"encoder": encoder, "language_model": tiny_models.tiny_gpt2(1), "entailment_model": None}
    return resolve_settings("mini", variant="fast", sample_weight=0.0, **models)


def calls_of(encoder, **runtime):
    return ModelCalls(settings_of(encoder).models, Runtime(**runtime))


def head_of(encoder, kind="encoder", outputs=1, **runtime):
    return TEXT_HEADS[kind].from_encoder(calls_of(encoder, **runtime), outputs).eval()


def scorer_of(encoder, progress=None):
    settings = settings_of(encoder)
    return MarsScorer("mini", variant="fast", store=False, progress=progress, **vars(settings.models))


def options_of(start=None, epochs=3, seed=0, **arguments):
    return TrainingOptions(start, epochs, seed, arguments)


def scores_of(head, rows):
    return [sum(term.value * term.weight for term in terms) for terms in head.score(head.features(rows))]


def before_and_after(saved, encoder, rows):
    """Scores by a head before and after its training, (2, rows)."""
    heads = head_of(encoder, saved.kind), load_text_head(saved.path, settings_of(encoder), calls_of(encoder))
    return np.array([scores_of(head, rows) for head in heads])


def rated(count=60):
    """Candidates of eight words, rated by how many of them stand in the first half of WORDS."""
    drawn = np.random.default_rng(0).choice(len(WORDS), (count, 8))
    rows = tuple(Row(" ".join(np.array(WORDS)[places]), TEXTS[:1], "wakes early") for places in drawn)
    ratings = (drawn < len(WORDS) / 2).sum(axis=1)
    groups = tuple(str(index // 4) for index in range(count))
    return TrainingSet("rated", rows, (ratings - ratings.mean()) / ratings.std(), groups)


def sources(count):
    drawn = np.random.default_rng(0)
    return [Source(" ".join(drawn.choice(WORDS, 8)), " ".join(drawn.choice(WORDS, 12))) for _ in range(count)]


def cosine(x, y):
    return float(torch.cosine_similarity(x.mean(0), y.mean(0), dim=0))


def test_an_untrained_encoder_scores_by_the_cosines_of_its_segments(original):
    head = head_of(original)
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


def test_ls_score_by_hand(original):
    head, tokenizer = head_of(original, "ls"), tiny_models.roberta_tokenizer()
    semantic, linguistic = head.score([TextFeatures((), TEXTS[0], TEXTS[1])])[0]
    with torch.no_grad():
        states, own = (
            head[0].auto_model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            for text in (TEXTS[1], TEXTS[0])
        )
        hidden = torch.nn.functional.gelu(head[1].linear(own[1:-1]))
        by_token = torch.log_softmax(hidden @ head[0].auto_model.get_input_embeddings().weight.T, -1)
        ids = tokenizer(TEXTS[0], add_special_tokens=False)["input_ids"]
        likelihood = float(by_token[range(len(ids)), ids].mean())
    assert (semantic.value, semantic.weight) == (pytest.approx(cosine(states, own), abs=1e-5), 1)
    assert (linguistic.value, linguistic.weight) == (pytest.approx(likelihood, abs=1e-4), ALPHA)
    without_words = head.score([TextFeatures((), "\u200b", "")])[0]
    assert without_words[0].value == 0
    assert np.isfinite(without_words[1].value)


@pytest.mark.parametrize("kind", TEXT_HEADS)
def test_order_and_padding_do_not_change_scores_and_the_best_reference_counts(kind, original):
    references = ("bread", "boats on the river")
    rows = [
        *rated(count=5).rows,
        Row("bread </s> " * 300, ("a very long candidate",), "river " * 400),
        *(Row("a shop", texts, "") for texts in (references[:1], references[1:], references)),
    ]
    head = head_of(original, kind, encoder_batch_size=4)
    one_by_one = [scores_of(head, [row])[0] for row in rows]
    assert scores_of(head, rows) == pytest.approx(one_by_one, abs=1e-5)
    assert scores_of(head, rows[::-1]) == pytest.approx(one_by_one[::-1], abs=1e-5)
    assert one_by_one[-1] == pytest.approx(max(one_by_one[-3:-1]))


def test_a_long_context_shows_the_parts_nearest_to_the_candidate(original):
    parts = [" ".join([word] * 100) for word in ("boats", "bread", "school", "river")]
    *vectors, own = (original.encode(text, normalize_embeddings=True) for text in (*parts, "school bread"))
    first, second = np.argsort([-float(vector @ own) for vector in vectors])[:2]
    rows = [Row("school bread", (), " ".join(parts)), Row("x", (), "short")]
    contexts = [features.context for features in head_of(original).features(rows)]
    assert contexts == [f"{parts[first]} {parts[second]}", "short"]


def test_an_encoder_whose_tokenizer_has_no_separator_is_refused():
    encoder = tiny_models.tiny_encoder(seed=4)
    encoder[0].tokenizer.sep_token = None
    with pytest.raises(UnsupportedModelError, match="has no separator between texts"):
        head_of(encoder)


def test_losses_by_hand(original):
    texts, contexts = ["bread", "boats on the river", "a shop"], ["x", "y", "z"]
    head = head_of(original, outputs=2)
    outputs = torch.tensor(head.outputs([("a town", *row) for row in zip(texts, contexts, strict=True)]))
    labels = outputs + torch.tensor([[0.0, 1.0], [0.0, float("nan")], [3.0, -3.0]])
    expected = 9 / 3 + 0.5 * (1 + 9) / 2  # the nan does not count
    columns = [["a town", "another"]] * 3, texts, contexts
    assert SignalLoss(head, (1.0, 0.5))(columns, labels).item() == pytest.approx(expected, abs=1e-4)
    head = head_of(original, "ls")
    whole, *damaged = head.outputs([("", text, "x") for text in texts]) @ [1, ALPHA]
    expected = sum(max(0, 1 - (whole - score)) for score in damaged)
    assert ContrastLoss(head)([[texts], ["x"]]).item() == pytest.approx(expected, abs=1e-4)


@pytest.fixture(scope="module")
def learned(tmp_path_factory, original):
    """A head that has learned ratings."""
    folder = tmp_path_factory.mktemp("head")
    return train_on_ratings(scorer_of(original), folder, [rated()], options_of(epochs=8, **QUICK))


def test_learns_ratings_and_leaves_the_shared_encoder_alone(learned, original):
    data = rated()
    before, after = np.corrcoef([*before_and_after(learned, original, data.rows), data.ratings])[:2, 2]
    assert after > before + 0.3
    as_built = tiny_models.tiny_encoder(seed=4).state_dict()
    assert all(torch.equal(value, as_built[name]) for name, value in original.state_dict().items())
    assert not any("word_embeddings" in name for name in learned.weights)
    assert sorted(path.name for path in learned.path.iterdir()) == ["head.json", "head.safetensors"]
    assert learned.parameters == {"objective": "ratings", "learning_rate": 2e-3, "seed": 0}
    assert learned.learned_from == [{"name": "rated", "ratings": 60, "groups": 15, "within_groups": False}]


def changed(name, change):
    return lambda weights: {**weights, name: change(weights[name])}


@pytest.mark.parametrize(
    "damage",
    [
        lambda weights: {f"x{name}": array for name, array in weights.items()},  # as of another release
        lambda weights: {name: array for name, array in weights.items() if name != "1.linear.bias"},
        changed("1.linear.bias", lambda array: np.zeros(2, array.dtype)),
        changed("1.linear.weight", lambda array: array[0]),
        changed("1.linear.weight", lambda array: array * np.nan),
        changed("1.linear.weight", lambda array: array.astype(np.float64) + 1e308),
        lambda weights: {name: np.full_like(array, 1e6) for name, array in weights.items()},
    ],
)
def test_weights_of_another_network_and_damaged_ones_are_refused(learned, original, tmp_path, damage):
    about = {"models": learned.models, "settings": {}, "parameters": {}, "learned_from": []}
    other = write_head(tmp_path, damage(learned.weights), kind="encoder", **about)
    with pytest.raises(HeadError, match=r"head\.safetensors"):
        scores_of(load_text_head(other.path, settings_of(original), calls_of(original)), rated(count=4).rows)


def test_training_goes_on_from_a_head_of_its_kind_and_encoder(learned, original, named_models, tmp_path):
    """With a learning rate of 0 it ends where it started, whatever is learned next."""
    scorer = scorer_of(original)
    options = options_of(learned.path, epochs=1, learning_rate=0.0, weight_decay=0.0)
    again = train_on_pairs(scorer, tmp_path, sources(5), options, count=10)
    assert again.learned_from == learned.learned_from
    same = {name for name, array in learned.weights.items() if np.array_equal(array, again.weights[name])}
    assert same >= learned.weights.keys() - {"1.linear.bias"}  # pre-training centres it
    with pytest.raises(HeadError, match="trained with encoder"):
        train_on_pairs(scorer_of(named_models["encoder"]), tmp_path, sources(10), options)
    with pytest.raises(ValueError, match="give one of kind ls"):
        train_on_contrasts(scorer, tmp_path, sources(10), options)
    for train in (train_on_ratings, train_on_pairs, train_on_contrasts):
        with pytest.raises(ValueError, match="nothing to learn from"):
            train(scorer, tmp_path, [])


@pytest.mark.slow
def test_contrast_prefers_whole_texts(original, tmp_path):
    texts = [Source(f"the baker opens her shop {source.text}", source.context) for source in sources(60)]
    rows = [
        Row(text, (), source.context) for source in texts for text in (source.text, *contrasts(source, texts, 1))
    ]
    options = options_of(epochs=6, **{**QUICK, "per_device_train_batch_size": 4})
    saved = train_on_contrasts(scorer_of(original), tmp_path, texts, options)
    scores = before_and_after(saved, original, rows).reshape(2, 60, -1)
    before, after = (scores[:, :, :1] > scores[:, :, 1:]).mean(axis=(1, 2))
    assert after > before + 0.1


@pytest.mark.slow
def test_pretraining_learns_the_signals(original, tmp_path):
    scorer = scorer_of(original)
    pairs = make_pairs(with_sentences(sources(30)), 150, scorer.calls)
    target = compute_signals(pairs, scorer)["MARS"][:, 0]
    saved = train_on_pairs(scorer, tmp_path, sources(30), options_of(epochs=16, **QUICK), count=150)
    before, after = np.corrcoef([*before_and_after(saved, original, pairs), target])[:2, 2]
    assert after > before + 0.2


@pytest.mark.slow
def test_goes_on_where_it_was_stopped_and_never_from_a_checkpoint_of_another_training(original, tmp_path):
    steps = []

    def stop_in_the_last_epoch(stage, done, total):
        if done == total - 1:
            raise KeyboardInterrupt

    def train(name, progress, seed=0):
        options = options_of(seed=seed, **QUICK)
        return train_on_ratings(scorer_of(original, progress), tmp_path / name, [rated()], options)

    with pytest.raises(KeyboardInterrupt):
        train("stopped", stop_in_the_last_epoch)
    assert not (tmp_path / "stopped" / "head.json").exists()
    *_, last = sorted(tmp_path.glob("stopped/checkpoints/*/checkpoint-*"))
    torn = shutil.copytree(last, last.with_name("checkpoint-99"))
    (torn / "trainer_state.json").unlink()  # as if the training had ended while it was written
    shutil.copytree(tmp_path / "stopped", tmp_path / "other")
    whole, resumed, other = (
        train(name, lambda stage, done, total: steps.append(done) if stage == "train" else None, seed)
        for name, seed in (("whole", 0), ("stopped", 0), ("other", 1))
    )
    assert [step for step, before in zip(steps, [99, *steps], strict=False) if step < before] == [1, 15, 1]
    for name, array in whole.weights.items():
        assert resumed.weights[name] == pytest.approx(array, abs=1e-5)
    assert sorted(path.name for path in other.path.iterdir()) == ["head.json", "head.safetensors"]


@pytest.fixture
def command(named_models, capsys):
    """Runs the command with tiny models; returns standard output and standard error."""
    models = [f"--{name.replace('_', '-')}={value}" for name, value in named_models.items()]

    def run_command(*argv):
        main([*map(str, argv), *models, "--quiet"])
        return capsys.readouterr()

    return run_command


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are")
def test_training_and_scoring_by_commands(tmp_path, command):
    texts = jsonl.write(
        tmp_path / "texts.jsonl", [{"references": [text], "context": context} for text, context in sources(8)]
    )
    ls, warm, other = (tmp_path / name for name in ("ls", "warm", "other"))
    contrastive = ["train", texts, "--objective=contrastive", "--epochs=1"]
    assert f"{ls}: ls:" in command(*contrastive, "--out", ls).out
    assert command(*contrastive, "--out", other, "--from", ls).out
    pretrain = ["train", texts, "--objective=pretrain", "--pairs=12", "--epochs=1"]
    assert f"{warm}: encoder:" in command(*pretrain, "--out", warm).out
    row = {"prediction": "boats", "context": "the river"}
    unrated = jsonl.write(tmp_path / "unrated.jsonl", [row, {**row, "prediction": " "}])
    printed = command("score", ls, unrated, "--no-references")
    assert printed.err == ""
    scored, blank = map(json.loads, printed.out.splitlines())
    assert (scored["terms"].keys(), scored["row"]) == ({"semantic", "linguistic"}, 0)
    assert blank == {"file": str(unrated), "row": 1, "score": 0, "terms": {}}
    with pytest.raises(ValueError, match=r"column 'reference' is missing"):
        command("score", warm, unrated)


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are")
def test_a_trained_encoder_scores_the_same_in_another_process(named_models, tmp_path, command):
    data = rated(count=40)
    lines = [
        {**asdict(row), "prediction": row.candidate, "human": rating, "group": group}
        for row, rating, group in zip(data.rows, data.ratings, data.groups, strict=True)
    ]
    file, head = jsonl.write(tmp_path / "rated.jsonl", lines), tmp_path / "head"
    assert f"{head}: encoder:" in command("train", file, "--epochs=1", "--out", head).out
    here = command("score", head, file)
    assert "with 40 ratings" in here.err
    models = [f"--{name.replace('_', '-')}={value}" for name, value in named_models.items()]
    argv = [sys.executable, "-m", "research.learned_encoders", "score", head, file, *models, "--quiet"]
    there = subprocess.run(argv, capture_output=True, text=True, check=True)
    scores = [[json.loads(line)["score"] for line in text.splitlines()] for text in (here.out, there.stdout)]
    assert scores[1] == pytest.approx(scores[0], abs=1e-6)
