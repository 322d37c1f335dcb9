"""Learned heads: ratings to learn from, folders and what is refused, and the head of terms."""

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest

from mars_score import MarsScorer
from mars_score.errors import HeadError, MarsWarning
from mars_score.heads import FORMAT, TermsHead, read_head, write_head
from mars_score.rows import Row
from mars_score.text import repeated_share
from mars_score.training import centred, fit_weights, train_terms, training_set
from tests import jsonl
from tests.setting_values import as_options

RATINGS = [1.0 + index % 5 for index in range(40)]
TWOS = [str(index // 2) for index in range(40)]


def rated(ratings, groups=TWOS, within_groups=False):
    """Every second candidate repeats words."""
    rows = []
    for index, group in enumerate(groups):
        good = f"people wait for boat number {index} at the old bridge"
        text = f"boat boat number {index} bridge bridge bridge people people" if index % 2 else good
        rows.append(Row(text, ("the boat leaves the bridge",), f"The ferry. {group}"))
    return training_set("talk", rows, ratings, groups, within_groups=within_groups)


RATED = [1.0 + 3 * (index % 2 == 0) + index % 3 * 0.1 for index in range(40)]
TALK = rated(RATED)
NAMES = ("candidate", "references", "context")
COLUMNS = [[getattr(row, name) for row in TALK.rows[:12]] for name in NAMES]


def test_ratings_are_standardised_in_the_set_or_in_groups_where_a_group_of_one_compares_with_nothing():
    for ratings in (RATINGS, [20 * rating - 7 for rating in RATINGS]):
        assert rated(ratings).ratings == pytest.approx((np.array(RATINGS) - 3) / np.sqrt(2))
    easier = [rating + 10 * (index // 2 % 2) for index, rating in enumerate(RATINGS)]
    data, other = (rated([*ratings, 5.0], [*TWOS, "alone"], True) for ratings in (RATINGS, easier))
    assert data.ratings == pytest.approx(other.ratings)
    assert data.ratings.reshape(-1, 2).sum(axis=1) == pytest.approx(0)
    assert data.ratings.std() == pytest.approx(1)
    assert "alone" not in data.groups


@pytest.mark.parametrize(
    ("ratings", "groups", "within", "fault"),
    [
        ([3.0] * 40, TWOS, False, "equal"),
        ([float(index // 2) for index in range(40)], TWOS, True, "equal within every group"),
        (RATINGS[:3], TWOS[:3], False, "3 ratings in 2 groups"),
        (RATINGS, ["a"] * 40, False, "40 ratings in 1 groups"),
        (RATINGS, [str(index) for index in range(40)], True, "0 ratings in 0 groups"),
    ],
)
def test_ratings_that_are_refused(ratings, groups, within, fault):
    with pytest.raises(ValueError, match=f"^talk: .*{fault}"):
        rated(ratings, groups, within)


def test_blank_candidates_teach_nothing():
    rows = [replace(row, candidate="") for row in TALK.rows[:2]]
    data = training_set("talk", [*rows, *TALK.rows], [9.0, 1.0, *RATED], ["0", "0", *TWOS])
    assert (data.rows, data.groups) == (TALK.rows, TALK.groups)
    assert data.ratings == pytest.approx(TALK.ratings)


@pytest.fixture(scope="module")
def models(encoder, llama):
    named = {"encoder": encoder, "language_model": llama, "entailment_model": None, "dtype": "float64"}
    return {**named, "variant": "fast", "repetition_penalty": 0.0}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, models):
    return train_terms(MarsScorer(**models, store=False), tmp_path_factory.mktemp("trained"), [TALK])


def test_a_head_of_terms_learns_what_ratings_ask_for(trained, models):
    learned = MarsScorer(**models, learned=trained.path)
    before, after = MarsScorer(**models).score(*COLUMNS), learned.score(*COLUMNS)
    agreement = [np.corrcoef(result.scores, TALK.ratings[:12])[0, 1] for result in (before, after)]
    assert agreement[1] > agreement[0] + 0.01
    for row in after.row_scores:
        assert row.score == pytest.approx(sum(term.value * term.weight for term in row.terms))
    weights = {term.name: term.weight for term in after.row_scores[1].terms}
    assert weights["repetition"] < 0
    assert len(after.row_scores[1].terms) == len(weights)
    assert [result.signature.to_dict()["learned"] for result in (before, after)] == [None, trained.fingerprint]
    assert f"|learned:{trained.fingerprint}|" in str(after.signature)
    assert pickle.loads(pickle.dumps(learned)).score(*COLUMNS).scores == after.scores


def features_of(row, **settings):
    scorer = MarsScorer(**settings, store=False)
    (features,) = TermsHead({}, scorer.settings, scorer.calls).features([row], scorer.row_scores([row]))
    return scorer, features


def test_features_of_a_row(models):
    context = "The ferry leaves in the morning before the rain."
    row = Row("The ferry leaves in the morning boat", ("one two", "one two three"), context)
    expected = {"copied": 6 / 7, "length": np.log(7 / 2.5), "repetition": repeated_share(row.candidate, 4, 10)}
    _, fast = features_of(row, **models)
    assert fast.values == pytest.approx(expected)
    assert [term.name for term in fast.terms] == ["references", "context"]
    scorer, plus = features_of(row, **{**models, "variant": "plus"})
    (log_p,) = scorer.calls.log_probability([(context, row.candidate)], 2048).values()
    assert plus.values == pytest.approx({**expected, "log_probability": log_p.alone, "pmi": log_p.pmi})
    _, plus = features_of(replace(row, task="dialogue"), **{**models, "variant": "plus"})
    assert plus.values.keys() == expected.keys()  # the likelihood is no term there
    _, fast = features_of(row, **{**models, "repetition_penalty": 0.3})
    assert fast.values.keys() == expected.keys() - {"repetition"}


@pytest.mark.parametrize("variant", ["paper", "plus"])
def test_training_and_scoring_have_the_same_features(tmp_path, models, variant):
    named = {name: models[name] for name in ("encoder", "language_model", "dtype")}
    options = {"planner": "none", "max_mask_ratio": 0.2} if variant == "paper" else {"use_context": False}
    scorer = MarsScorer(**named, variant=variant, **options)
    saved = train_terms(scorer, tmp_path, [TALK])
    rows = TALK.prepared_rows(scorer)
    head = TermsHead.load(saved, scorer.settings, scorer.calls)
    terms = head.score(head.features(rows, scorer.row_scores(rows)))
    learned = MarsScorer(**named, learned=tmp_path)
    for row, expected in zip(learned.row_scores(rows), terms, strict=True):
        assert [term.name for term in row.terms] == [term.name for term in expected]
        assert [term.weight for term in row.terms] == [term.weight for term in expected]
        assert [term.value for term in row.terms] == pytest.approx([term.value for term in expected])
    assert {row.context for row in rows} == {""} if variant == "plus" else {row.context for row in TALK.rows}


def test_a_blank_candidate_keeps_its_score_and_references_are_needed(trained, models):
    scorer = MarsScorer(**models, learned=trained.path)
    with pytest.warns(MarsWarning):
        result = scorer.score([" ", "a boat"], ["the boat"] * 2, ["x", "x"])
    assert result.scores[0] == 0 != result.scores[1]
    with pytest.raises(ValueError, match="needs references"):
        scorer.score(["a boat"], contexts=["the boat"])
    with pytest.warns(MarsWarning):
        assert scorer.score([" "], ["the boat"], ["x"]).scores == [0]


def test_settings_follow_from_the_head(tmp_path, models, named_models):
    named = {name: models[name] for name in ("encoder", "language_model", "dtype")}
    saved = train_terms(MarsScorer(**named, variant="plus", store=False, premise_words=50), tmp_path, [TALK])
    assert saved.models.keys() == {"encoder", "language_model", "entailment_model"}
    settings = MarsScorer(**named, learned=tmp_path).settings
    config = settings.config
    assert (settings.variant, config.likelihood_weight, config.premise_words) == ("plus", 0.15, 50)
    for changed, fault in (
        ({"likelihood_weight": 0.3}, r"likelihood_weight=0\.15"),
        ({"variant": "fast"}, "variant='plus'"),
        ({"variant": "paper"}, "variant='plus'"),
        ({"encoder": named_models["encoder"]}, "encoder SentenceTransformer@"),
    ):
        with pytest.raises(HeadError, match=f"trained with {fault}"):
            MarsScorer(**{**named, **changed}, learned=tmp_path)


DAMAGED = "head.json is damaged"
REFUSED = "head.json sets {}, which no head may set"


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ({"format": 3}, f"head.json is of format 3; .* has {FORMAT}"),
        ({"format": None}, "head.json is of format None"),
        ({"models": None}, DAMAGED),
        ({"models": {"encoder": 1}}, DAMAGED),
        ({"settings": []}, DAMAGED),
        ({"charm": 1}, DAMAGED),
        ({"path": "x"}, DAMAGED),
        ({"kind": "other"}, "a head of kind 'other'"),
        ({"kind": "encoder"}, r"kind 'encoder', .*: python -m research\.learned_encoders score .*head FILE$"),
        ({"models": {"encoder": "gone@1"}}, "trained with encoder gone@1"),
        # A head chooses no model: a folder from elsewhere could name any.
        ({"models": {"oracle": "gone@1"}}, REFUSED.format("oracle")),
        ({"settings": {"charm": 1, "encoder": "x"}}, REFUSED.format("charm, encoder")),
        ({"settings": {"language_model": "x/y"}}, REFUSED.format("language_model")),
        ({"settings": {"learned": "x/y"}}, REFUSED.format("learned")),
        ({"settings": {"variant": "paper", "idf_corpus": "/etc/hostname"}}, REFUSED.format("idf_corpus")),
        ({"settings": {"variant": "plus", "sigma": 3}}, REFUSED.format("sigma")),
        ({"settings": {"variant": "best"}}, "head.json has settings .*variant"),
        ({"settings": {"variant": ["plus"]}}, "head.json has settings .*variant"),
        ({"settings": {"variant": "plus", "context_weight": 7}}, "head.json has settings .*context_weight"),
        ({"settings": {"variant": "plus", "context_weight": "x"}}, "head.json has settings .*context_weight"),
        (("head.json", b"[1]"), DAMAGED),
        (("head.json", b'{"format": 4'), DAMAGED),
        (("head.json", b"\xff\xfe"), DAMAGED),
        (("head.json", b"[" * 100_000), DAMAGED),
        (("head.safetensors", b"1"), "head.safetensors is not the file"),
        (("head.safetensors", None), "head.safetensors is not the file"),
    ],
)
def test_folders_that_are_refused(trained, damage, fault, models, tmp_path):
    folder = shutil.copytree(trained.path, tmp_path / "head")
    if isinstance(damage, dict):
        description = json.loads((folder / "head.json").read_text())
        damage = "head.json", json.dumps({**description, **damage}).encode()
    name, content = damage
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(HeadError, match=fault) as error:
        MarsScorer(**models, learned=folder).score(["a"], ["b"], ["c"])
    assert str(error.value).startswith(str(folder))


def rewrite(trained, folder, weights):
    """A head with other weights, given by name or as the bytes of their file."""
    fields = ("kind", "models", "settings", "parameters", "learned_from")
    description = {name: getattr(trained, name) for name in fields}
    if isinstance(weights, dict):
        return write_head(folder, weights, **description)
    write_head(folder, {}, **description)
    (folder / "head.safetensors").write_bytes(weights)
    file = folder / "head.json"
    digest = hashlib.blake2b(weights, digest_size=8).hexdigest()
    file.write_text(json.dumps({**json.loads(file.read_text()), "weights_digest": digest}))
    return read_head(folder)


def safetensors(number_type, shape, size):
    """A file with a tensor of ``size`` bytes, which its header may describe wrongly."""
    header = json.dumps({"length": {"dtype": number_type, "shape": shape, "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


def weight(value, dtype=np.float64, shape=(1,)):
    return {"length": np.full(shape, value, dtype)}


@pytest.mark.parametrize(
    "weights",
    [
        b"",
        b"\xff" * 100,
        safetensors("F64", [1], 8)[:-1],
        safetensors("F64", [1], 8) + b"more",
        safetensors("F64", [2], 8),
        safetensors("BF16", [1], 2),
        weight(np.nan),
        weight(np.inf),
        weight(1e308),
        weight(-1e308),
        weight(1, np.int64),
        weight(1, bool),
        weight(0.1, shape=(2,)),
        weight(0.1, shape=(0,)),
        {**weight(0.1), "charm": np.ones(1)},
    ],
)
def test_weights_that_are_refused(trained, weights, models, tmp_path):
    damaged = rewrite(trained, tmp_path / "head", weights)
    with pytest.raises(HeadError, match=r"head\.safetensors"):
        MarsScorer(**models, learned=damaged.path).score(["a"], ["b"], ["c"])


@pytest.mark.parametrize("head", ["nothing", "x" * 5000, "a\0b", "\ud83d"])
def test_a_folder_that_is_not_there(head, tmp_path):
    with pytest.raises(FileNotFoundError, match="mars train"):
        read_head(tmp_path / head)


def test_a_fingerprint_is_of_the_content(tmp_path):
    description = {"kind": "terms", "models": {}, "settings": {}, "parameters": {"a": 1}, "learned_from": []}
    same, again, other = (
        write_head(tmp_path / name, {"weights": np.arange(3.0) + shift}, **description)
        for name, shift in (("a", 0), ("b", 0), ("c", 1e-9))
    )
    assert same.fingerprint == again.fingerprint != other.fingerprint
    assert same.weights["weights"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in same.path.iterdir()) == ["head.json", "head.safetensors"]


def test_weights_maximise_the_correlation_within_bounds_and_few_groups_change_little():
    features, scores = np.split(np.random.default_rng(0).normal(size=(300, 4)), [3], axis=1)
    features[:, 2] = np.log(1.5)  # the same in all rows, from whose mean rounding leaves differences
    ratings = scores[:, 0] + 0.5 * features[:, 0] - features[:, 1]
    columns = centred((features, scores[:, 0], ratings))
    assert columns[0][:, 2].any()

    def weights(groups, penalty, least=None):
        return fit_weights([(*columns, groups)], [(least, None)] * 3, penalty).tolist()

    assert weights(300, 1e-9) == pytest.approx([0.5, -1, 0], abs=1e-3)
    bounded = weights(300, 1e-9, least=0)
    assert bounded[1:] == [0, 0]
    assert bounded[0] > 0
    assert np.all(np.abs(weights(10, 100)) < [0.05, 0.1, 1e-9])


def test_a_set_that_is_not_among_the_files_is_refused(tmp_path, failing):
    row = {"prediction": "a", "reference": ["b"], "context": "c", "human": 1}
    file = jsonl.write(tmp_path / "talk.jsonl", [row])
    assert "unknown data set 'chat'" in failing("train", file, "--within-groups=chat", "--out", tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are")
def test_a_head_scores_the_same_in_another_process(named_models, tmp_path, run):
    """With models in folders, as objects cannot be shared; through the command line."""
    rows = [
        {**asdict(row), "prediction": row.candidate, "human": rating}
        for row, rating in zip(TALK.rows, RATED, strict=True)
    ]
    named = {**named_models, "variant": "fast", "support_weight": 0, "contradiction_penalty": 0}
    file = jsonl.write(tmp_path / "talk.jsonl", rows)
    code, printed, errors = run("train", file, "--out", tmp_path, "--quiet", *as_options(named))
    assert code == 0, errors
    assert "learned from 40 ratings" in printed
    script = (
        "import json, sys; from mars_score import MarsScorer; "
        "print(json.dumps(MarsScorer(**json.loads(sys.argv[1])).score(*json.loads(sys.argv[2])).scores))"
    )
    arguments = {**named, "learned": str(tmp_path)}
    command = [sys.executable, "-c", script, json.dumps(arguments), json.dumps(COLUMNS)]
    there = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(there.stdout) == pytest.approx(MarsScorer(**arguments).score(*COLUMNS).scores, abs=1e-6)
