"""Synthetic pairs, their signals, and learning from them and from damaged texts."""

import json

import jsonl
import numpy as np
import pytest
import tiny_models
import torch
from test_learning_encoder import WORDS, rated, score_of, settings

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.errors import UnsupportedModelError
from mars_score.learning.contrastive import ALPHA, LsHead, damaged, fit_contrast
from mars_score.learning.encoder import EncoderHead
from mars_score.learning.objectives import EncoderTraining
from mars_score.learning.pairs import (
    Source,
    drop_words,
    generator,
    infillers,
    make_pairs,
    read_corpus,
    references_of,
    with_sentences,
)
from mars_score.learning.pretraining import pretrain
from mars_score.learning.signals import ENTAILMENT, FLAG, read_signals
from mars_score.learning.training import TrainingSettings
from mars_score.learning.translation import RoundTrip
from mars_score.meta.attacks import ATTACKS
from mars_score.scoring.heads import Example, load_head
from mars_score.settings import resolve_settings
from mars_score.store.runtime import Runtime

TEXTS = [
    "The old harbour town wakes early in the summer.",
    "The baker opens her shop and puts warm bread in the window.",
    "She said that she waited for an hour to get her car fixed.",
    "The children walk to school along the river, past the library.",
]
CONTEXT = "It will rain before noon. Nobody answered the phone. They stop on the bridge to look at the boats."
SOURCES = [Source(text, CONTEXT if index % 2 else "") for index, text in enumerate(TEXTS)]


def all_tiny():
    models = {"encoder": tiny_models.tiny_encoder(4), "language_model": tiny_models.tiny_gpt2(1)}
    return resolve_settings("mini", variant="plus", **EncoderHead.form, **models)


def tiny_translator(seed):
    return tiny_models.tiny_bart(seed), tiny_models.roberta_tokenizer()


@pytest.fixture(autouse=True)
def short_translations(monkeypatch):
    """Random models never end a text."""
    monkeypatch.setattr("mars_score.learning.translation._MOST_TOKENS", 12)


@pytest.fixture(scope="module")
def round_trip():
    return RoundTrip(tiny_translator(1), tiny_translator(2))


def test_pairs_of_each_method(round_trip):
    pairs = make_pairs(SOURCES, 100, 0, infillers(all_tiny(), Runtime()), round_trip.back_translate)
    methods = {pair.method for pair in pairs}
    infilled = {"infill random", "infill span", "infill and drop"}
    assert methods == {"intact", "drop", "reorder", "retrieve", "foreign", "back-translation", *infilled}
    for pair in pairs:
        text = pair.source.text
        assert pair.candidate.strip()
        assert pair.source in SOURCES
        if pair.method == "intact":
            assert pair.candidate == text
            assert pair.damage == 0
        if pair.method == "reorder":
            assert sorted(pair.candidate.split()) == sorted(text.split())
            assert pair.candidate != text
        if pair.method == "retrieve":
            assert pair.candidate in CONTEXT
        if pair.method == "foreign":
            assert pair.candidate in TEXTS
            assert pair.candidate != text
        if pair.method == "infill span":  # what is around the span is kept
            words = text.split()
            assert pair.candidate.startswith(words[0]) or pair.candidate.endswith(words[-1])
    # Two shares of words: the larger leaves fewer.
    for source in SOURCES:
        few, many = (pair for pair in pairs if pair.method == "drop" and pair.source == source)
        assert len(few.candidate.split()) > len(many.candidate.split())


def test_the_language_model_fills_and_reads_a_share_of_the_texts():
    sources, of_models = many_sources(40), all_tiny()
    pairs = make_pairs(sources, 300, 1, infillers(of_models, Runtime()), share=0.2)
    infilled = {pair.source for pair in pairs if pair.method.startswith("infill")}
    assert 0 < len(infilled) < 0.5 * len({pair.source for pair in pairs})
    read = ~np.isnan(read_signals(pairs, of_models, Runtime(), share=0.2, seed=1)["likelihood"]).any(axis=1)
    assert {pair.source for pair, of_pair in zip(pairs, read, strict=True) if of_pair} == infilled
    assert {pair.source for pair, of_pair in zip(pairs, read, strict=True) if not of_pair}.isdisjoint(infilled)


def test_pretraining_learns_a_signal_where_it_was_read():
    pairs, of_models = make_pairs(SOURCES, 20), all_tiny()
    signals = {"likelihood": np.full((len(pairs), 2), np.nan)}

    def learned():
        head = EncoderHead(of_models, Runtime(), TrainingSettings(1, 8, 3e-3))
        pretrain(head, pairs, signals)
        return score_of(head, [Example(TEXTS[0], (TEXTS[1],), "")])[0]

    unread = learned()
    signals["likelihood"][:8] = np.arange(16).reshape(8, 2)
    assert np.isfinite([unread, learned()]).all()
    assert unread != learned()


def test_a_masked_model_infills_too():
    models = {"language_model": tiny_models.tiny_gpt2(1), "masked_language_model": tiny_models.tiny_roberta_mlm(3)}
    pairs = make_pairs(SOURCES, 100, 0, infillers(resolve_settings("mini", variant="plus", **models), Runtime()))
    assert {"infill random", "masked random", "masked span", "masked and drop"} < {pair.method for pair in pairs}


def test_pairs_depend_on_the_text_and_the_seed_alone():
    pairs = make_pairs(SOURCES, 100)
    assert pairs == make_pairs(SOURCES[::-1], 100) != make_pairs(SOURCES, 100, seed=1)
    with_more = make_pairs([*SOURCES, Source("A text that was added to the others.")], 100)
    kept = [pair for pair in with_more if pair.source in SOURCES and pair.method != "foreign"]
    assert {*kept} == {pair for pair in pairs if pair.method != "foreign"}


def test_count_limits_pairs_and_sources():
    pairs = make_pairs(SOURCES, 9)
    assert len(pairs) == 9
    assert len({pair.source for pair in pairs}) == 2


def test_drop_words_leaves_one():
    assert drop_words("one two", 0.9, generator()) in ("one", "two")
    assert len(drop_words("a b c d e f g h i j", 0.3, generator()).split()) == 7


def test_corpus_of_rated_sets_holds_no_candidates():
    data, _ = rated(count=40)
    assert {source.text for source in with_sentences(references_of([data]))} == {"the old harbour town"}


def test_sentences_of_contexts_join_the_texts():
    found = with_sentences(SOURCES)
    assert found[: len(SOURCES)] == SOURCES
    added = [Source(one, CONTEXT) for one in ("It will rain before noon.", "Nobody answered the phone.")]
    assert found[len(SOURCES) : -1] == added
    assert found[-1].text.startswith("They stop on the bridge")


def test_corpus_files(tmp_path):
    lines = tmp_path / "texts.txt"
    lines.write_text("too short\nA line that is long enough.\n\n")
    assert read_corpus(lines) == [Source("A line that is long enough.")]
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"references": ["One two three four.", "Five six seven eight."], "context": "Before it."}\n')
    assert read_corpus(rows) == [
        Source("One two three four.", "Before it."),
        Source("Five six seven eight.", "Before it."),
    ]
    with pytest.raises(ValueError, match="column 'text' is missing"):
        read_corpus(rows, "text")
    rows.write_text('{"references": ["One two three four.", 5], "context": "Before it."}\n')
    with pytest.raises(TypeError, match=r"rows.jsonl:1: column 'references' must be a string"):
        read_corpus(rows)
    lines.write_text("too short\n")
    with pytest.raises(ValueError, match="no text has 4 to 100 words"):
        read_corpus(lines)


def test_signals(round_trip):
    pairs = make_pairs(SOURCES[:2], 100, 0, None, round_trip.back_translate)
    found = read_signals(pairs, all_tiny(), Runtime(), round_trip, tiny_models.tiny_classifier(3))
    shapes = {name: values.shape[1] for name, values in found.items()}
    assert shapes == {
        "BLEU": 1,
        "ROUGE-L": 3,
        "BERTScore": 3,
        "MARS": 1,
        "likelihood": 2,
        "back-translation": 2,
        FLAG: 2,
        ENTAILMENT: 3,
    }
    assert all(len(values) == len(pairs) and np.isfinite(values).all() for values in found.values())
    intact = [pair.method == "intact" for pair in pairs]
    for name in ("BLEU", "ROUGE-L", "BERTScore"):
        assert found[name][intact] == pytest.approx(1.0, abs=1e-5), name
        assert found[name][[not one for one in intact]].mean() < 0.95, name
    columns = [p.candidate for p in pairs], [p.source.text for p in pairs], [p.source.context for p in pairs]
    own = MarsScorer(variant="fast", store=False, encoder=tiny_models.tiny_encoder(4))
    assert found["MARS"][:, 0] == pytest.approx(own.score(*columns).scores, abs=1e-5)
    assert found[ENTAILMENT].sum(axis=1) == pytest.approx(1.0)
    assert found[FLAG].tolist() == [
        [p.method != "back-translation", p.method == "back-translation"] for p in pairs
    ]
    alone = read_signals(pairs[-1:], all_tiny(), Runtime(), round_trip, tiny_models.tiny_classifier(3))
    assert all(alone[name][0] == pytest.approx(found[name][-1], abs=1e-4) for name in found)


def test_signals_without_models_are_left_out():
    found = read_signals(make_pairs(SOURCES, 5), all_tiny(), Runtime())
    assert set(found) == {"BLEU", "ROUGE-L", "BERTScore", "MARS", "likelihood"}


def test_an_entailment_model_needs_three_classes():
    with pytest.raises(UnsupportedModelError, match="2 classes, but three"):
        read_signals(make_pairs(SOURCES, 5), all_tiny(), Runtime(), entailment=tiny_models.tiny_classifier(2))


def test_back_translation_likelihood_by_hand(round_trip):
    (model, tokenizer), text, other = tiny_translator(2), TEXTS[0], TEXTS[1]
    there = RoundTrip(tiny_translator(1), tiny_translator(2))._translate(tiny_translator(1), [text])
    with torch.no_grad():
        encoded = tokenizer(there, return_tensors="pt")
        labels = tokenizer(text_target=other, return_tensors="pt")["input_ids"]
        expected = -model(input_ids=encoded["input_ids"], labels=labels).loss
    found = round_trip.likelihoods([TEXTS[2], text], [TEXTS[3], other])
    assert found[1] == pytest.approx(float(expected), abs=1e-4)


def many_sources(count=30):
    drawn = np.random.default_rng(0)
    return [Source(" ".join(drawn.choice(WORDS, 8)), " ".join(drawn.choice(WORDS, 12))) for _ in range(count)]


@pytest.mark.slow
def test_pretraining_orders_damage_and_is_saved_with_the_head(tmp_path):
    of_models = all_tiny()
    pairs = make_pairs(many_sources(), 150)
    head = EncoderHead(of_models, Runtime(), TrainingSettings(12, 16, 2e-3, patience=12))
    rows = [Example(pair.candidate, (pair.source.text,), pair.source.context) for pair in pairs]
    dropped = [pair for pair in pairs if pair.method == "drop" and pair.damage == 0.2]

    def preferred():
        """How often an intact text is preferred to most of its words."""
        scores = dict(zip(pairs, score_of(head, rows), strict=True))
        intact = {pair.source: scores[pair] for pair in pairs if pair.method == "intact"}
        return np.mean([intact[pair.source] > scores[pair] for pair in dropped])

    before = preferred()
    pretrain(head, pairs, read_signals(pairs, of_models, Runtime()))
    assert set(head.network.layers) == {"rating"}
    assert preferred() > before + 0.2
    head.save(tmp_path)
    data, examples = rated(count=40)
    tuned = EncoderHead(of_models, Runtime(), TrainingSettings(1, 16, 1e-5)).start_from(head.save(tmp_path))
    assert score_of(tuned, rows[:3]) == score_of(head, rows[:3])
    assert tuned.fit([data], [examples]).save(tmp_path / "tuned").fingerprint != head.fingerprint


def test_weights_of_signals_change_what_is_learned():
    of_models = all_tiny()
    pairs = make_pairs(SOURCES, 20)
    signals = read_signals(pairs, of_models, Runtime())
    found = []
    assert set(signals) - set(read_signals(pairs, of_models, Runtime(), without=["MARS"])) == {"MARS"}
    for weights in ({}, {"BLEU": 0.0}, {"damage": 0.0}):
        head = EncoderHead(of_models, Runtime(), TrainingSettings(1, 16, 3e-3))
        pretrain(head, pairs, signals, weights)
        found.append(score_of(head, [Example(TEXTS[0], (TEXTS[1],), "")])[0])
    assert len(set(found)) == 3


def test_the_learning_rate_follows_from_what_is_learned_from(tmp_path):
    data, examples = rated(count=8)
    teachings = [
        (1e-4, lambda head: fit_contrast(head, SOURCES)),
        (3e-5, lambda head: head.fit([data], [examples])),
    ]
    for rate, teach in teachings:
        for given, expected in ((None, rate), (0.0, 0.0)):
            head = EncoderHead(settings(), Runtime(), TrainingSettings(1, 16, given))
            teach(head)
            assert head.save(tmp_path).about["parameters"]["training"]["learning_rate"] == expected


def test_damaged_texts():
    words_deleted, foreign_added, disordered = damaged(SOURCES[1], SOURCES, 0)
    words = TEXTS[1].split()
    assert len(words_deleted.split()) == len(words) - round(0.3 * len(words))
    assert foreign_added.startswith(TEXTS[1])
    assert foreign_added[len(TEXTS[1]) + 1 :] in (TEXTS[0], TEXTS[2])
    assert sorted(disordered.split()) == sorted(words)
    assert disordered != TEXTS[1]


def test_ls_score_by_hand():
    head = LsHead(settings(), Runtime())
    text, context = TEXTS[0], TEXTS[1]
    semantic, linguistic = head.score([Example(text, (), context)])[0]
    tokenizer = tiny_models.roberta_tokenizer()
    states = []
    with torch.no_grad():
        head.network.eval()
        for one in (text, context):
            states.append(head.network.transformer(**tokenizer(one, return_tensors="pt")).last_hidden_state[0])
        cosine = torch.cosine_similarity(states[0].mean(0), states[1].mean(0), dim=0)
        hidden = torch.nn.functional.gelu(head.network.layers["linguistic"](states[0][1:-1]))
        table = head.network.transformer.get_input_embeddings().weight
        of_words = torch.log_softmax(hidden @ table.T, -1)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        likelihood = np.mean([float(of_words[place, token]) for place, token in enumerate(ids)])
    assert (semantic.value, semantic.weight) == (pytest.approx(float(cosine), abs=1e-5), 1)
    assert (linguistic.value, linguistic.weight) == (pytest.approx(likelihood, abs=1e-4), ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [LsHead, EncoderHead])
def test_contrast_prefers_whole_texts(cls, tmp_path):
    of_models = settings()
    sources = [Source("the baker opens her shop " + one.text, one.context) for one in many_sources(60)]
    head = cls(of_models, Runtime(), TrainingSettings(6, 16, 3e-3, patience=6))

    def preferred():
        texts = [(text, one.context) for one in sources for text in (one.text, *damaged(one, sources, 1))]
        scores = np.reshape(score_of(head, [Example(text, (), context) for text, context in texts]), (60, -1))
        return np.mean(scores[:, :1] > scores[:, 1:])

    before = preferred()
    fit_contrast(head, sources)
    assert preferred() > before + 0.1
    saved = head.save(tmp_path)
    models = {"encoder": of_models.models.encoder}
    loaded = load_head(saved.path, resolve_settings("mini", variant="plus", **cls.form, **models), Runtime())
    assert type(loaded) is cls
    rows = [Example(TEXTS[0], (), CONTEXT), Example(TEXTS[1], (), "")]
    assert score_of(loaded, rows) == score_of(head, rows)


def test_ls_score_of_empty_parts():
    head = LsHead(settings(), Runtime())
    semantic, linguistic = head.score([Example("\u200b", (), "")])[0]
    assert semantic.value == 0
    assert np.isfinite(linguistic.value)


def test_attacks_are_among_the_pairs():
    assert set(ATTACKS) <= {pair.method for pair in make_pairs(SOURCES, 100)}


@pytest.mark.slow
def test_each_objective_is_run_from_files_to_a_folder(tmp_path):
    for name, pair in (
        ("there", tiny_translator(1)),
        ("back", tiny_translator(2)),
        ("entail", tiny_models.tiny_classifier(3)),
    ):
        for part in pair:
            part.save_pretrained(tmp_path / name)
    data, examples = rated(count=40)
    short = TrainingSettings(1, 16, 1e-3)
    models = {
        "translators": (str(tmp_path / "there"), str(tmp_path / "back")),
        "entailment": str(tmp_path / "entail"),
    }
    first = EncoderTraining("pretrain", pairs=40, training=short, **models)
    pretrained = first.run(tmp_path / "pretrained", all_tiny(), Runtime(), sources=SOURCES)
    tuned = EncoderTraining("ratings", start=pretrained.path, training=short)
    found = tuned.run(tmp_path / "tuned", all_tiny(), Runtime(), [data])
    cold = EncoderTraining("ratings", training=short).run(tmp_path / "cold", all_tiny(), Runtime(), [data])
    assert len({pretrained.fingerprint, found.fingerprint, cold.fingerprint}) == 3
    assert score_of(load_head(found.path, all_tiny(), Runtime()), examples[:1])
    contrast = EncoderTraining("contrastive", kind="ls", training=short)
    assert contrast.run(tmp_path / "ls", all_tiny(), Runtime(), sources=SOURCES).kind == "ls"
    with pytest.raises(ValueError, match="signal 'METEOR'"):
        EncoderTraining("pretrain", weights={"METEOR": 0.5}).run(
            tmp_path / "x", all_tiny(), Runtime(), sources=SOURCES
        )
    with pytest.raises(ValueError, match="no texts to learn from"):
        contrast.run(tmp_path / "ls", all_tiny(), Runtime())
    with pytest.raises(ValueError, match="trained with encoder"):
        tuned.run(tmp_path / "other", settings(tiny_models.tiny_encoder(9)), Runtime(), [data])


def test_mars_train_and_mars_score_with_an_encoder(named_models, tmp_path, capsys):
    (tmp_path / "texts.jsonl").write_text(
        "".join(json.dumps({"references": [one.text], "context": one.context}) + "\n" for one in many_sources(20))
    )
    data, _ = rated(count=60)
    items = zip(data.rows, (10 * data.ratings + 50).tolist(), data.groups, strict=True)
    rows = [
        {"candidate": candidate, "references": references, "context": context, "human": rating, "group": group}
        for (candidate, references, context), rating, group in items
    ]
    jsonl.write(tmp_path / "rated.jsonl", rows)
    rated_file, texts = str(tmp_path / "rated.jsonl"), str(tmp_path / "texts.jsonl")
    models = ["--preset", "mini", "--encoder", named_models["encoder"], "--quiet"]

    def run(*arguments):
        code = main([*arguments, *models])
        return code, capsys.readouterr()

    code, printed = run(
        "train", texts, "--objective", "contrastive", "--epochs", "1", "--out", str(tmp_path / "ls")
    )
    assert code == 0, printed
    assert "learned from 20 texts" in printed.out
    start = ["--from", str(tmp_path / "ls"), "--head", "encoder", "--epochs", "1"]
    code, printed = run("train", rated_file, *start, "--out", str(tmp_path / "tuned"))
    assert code == 0, printed
    assert "learned from 60 ratings" in printed.out
    free = tmp_path / "free.jsonl"
    free.write_text(json.dumps({"prediction": "bread and boats", "context": "the river"}) + "\n")
    code, printed = run("score", str(free), "--no-references", "--learned", str(tmp_path / "ls"))
    assert code == 0, printed
    full = tmp_path / "full.jsonl"
    full.write_text(json.dumps({"prediction": "bread", "context": "the river", "reference": "boats"}) + "\n")
    code, printed = run("score", str(full), "--learned", str(tmp_path / "tuned"))
    assert code == 0, printed
    code, printed = run("train", texts, "--head", "terms", "--objective", "pretrain", "--out", str(tmp_path / "x"))
    assert code == 2
    assert "trains an encoder" in printed.err


@pytest.mark.parametrize("share", ["1.5", "-0.1", "half", "nan"])
def test_a_share_is_from_0_to_1(share, capsys):
    assert main(["train", "texts.jsonl", "--objective", "pretrain", f"--share={share}", "--out", "x"]) == 2
    assert "not a share from 0 to 1" in capsys.readouterr().err
