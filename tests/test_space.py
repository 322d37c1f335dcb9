"""The parts of the Space, with tiny models and without a browser."""

import asyncio
import csv
import dataclasses
import json
import re
import subprocess
import sys
from functools import partial
from html import escape
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
import tiny_models
import torch

from mars_score.augment.masking.template import Template
from mars_score.augment.sampling.prompts import task_of
from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.learning.terms import FEATURES
from mars_score.scorer import MarsScorer
from mars_score.scoring.result import SampleScore, Term
from mars_score.settings import resolve_settings
from mars_score.settings.fields import TASKS, UNSAMPLED_TASKS
from mars_score.settings.presets import DEFAULT_VARIANT
from mars_score.space import downloads, limits
from mars_score.space.answer import Asked, Metric, infilled_spans, plain_notice
from mars_score.space.choices import BY_FORM, OWN_PROMPT, PRESET, Choices, space_preset
from mars_score.space.compared import ASKED, NOT_ASKED, compared_page, masked_words
from mars_score.space.controls import values_of
from mars_score.space.engine import Engine
from mars_score.space.examples import Example, read_examples
from mars_score.space.file_pages import histogram_page, table_page
from mars_score.space.handlers import Handlers
from mars_score.space.inputs import Question, read_question
from mars_score.space.layout import build
from mars_score.space.limits import BodyLimit, RateLimit, Refused, check_batch
from mars_score.space.pages import METRICS, TERMS, headline, ranking_page
from mars_score.space.uploads import SAMPLE, read_upload

pytestmark = pytest.mark.usefixtures("tiny_space")

ROOT = Path(__file__).parent.parent
DEFAULTS = dataclasses.astuple(Choices())
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script> ${alert(3)} {{value}}'
VISITOR, OTHER = (SimpleNamespace(session_hash=name, client=None) for name in ("one", "two"))
QUESTION = Question("It rained.", ("She took a bus.",), ("She took a bus.",))
DIALOGUE = "I finished my first marathon!\nHow do you feel?\nMy legs hurt a little today."
STORY = "It had been raining for three days."


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def handlers(engine):
    return Handlers(engine)


def upload(tmp_path, content, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def answer(*candidates, references=("a b c",), context="c", **choices):
    return Engine().answer(Question(context, tuple(references), candidates), Choices(**choices))


# What a visitor types


def test_each_line_is_a_text():
    question = read_question(" It rained.\nA lot. ", "One.\r\nTwo.\n", " a \n\nb\n")
    assert question == Question(
        " It rained.\nA lot. ", ("One.", "Two."), ("a", "b"), ("1 blank line was left out.",)
    )
    assert "context is empty" in read_question(" ", "r", "c").notices[0]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("", "", "x"), "a reference, which is"),
        (("c", "r", " \n "), "at least one candidate"),
        ((" ", None, ["x"]), "or a context"),
        ((3, "r", "x"), "context must be a text"),
        (("c", {"a": 1}, "x"), "references must be a list"),
        (("c", "r", [1]), "candidates must be a list"),
        (("c" * 5_001, "r", "x"), "5,001 characters"),
        (("c", "r" * 601, "x"), "at most 600"),
        (("c", "r", "x" * 1_501), "at most 1,500"),
        (("c", "r\n" * 5, "x"), "5 references"),
        (("c", "r", ["x"] * 13), "13 candidates"),
        (("c", "r", "x" * 10_000_000), "10,000,000 characters"),
    ],
)
def test_bad_questions_are_refused(texts, message):
    with pytest.raises(Refused, match=message):
        read_question(*texts)


def test_unpaired_surrogates_and_nul_are_replaced():
    assert read_question("a\0b", "\ud83d r", "x") == Question("a\ufffdb", ("\ufffd r",), ("x",))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((0, ratio) for ratio in (2, float("nan"), float("inf"), "../../etc")),
        *((1, planner) for planner in ("evil/model", ["none"])),
        (2, "other"),
        (3, 0),
        (5, "yes"),
        *((6, samples) for samples in (-1, limits.SAMPLES + 1, 1e999, float("nan"), "8", None)),
        *((8, head) for head in ("other", "../../evil", "/etc/passwd", 3)),
        *((7, task) for task in ("poem", OWN_PROMPT, ["story"], "{context}" + "x" * limits.PROMPT_CHARACTERS)),
    ],
)
def test_settings_out_of_range_are_refused(place, value):
    with pytest.raises(Refused):
        Choices.read(*DEFAULTS[:place], value, *DEFAULTS[place + 1 :])


def test_defaults_are_those_of_the_package(handlers):
    """In the code, on the page and in the API; none is written down a second time."""
    package = dict(resolve_settings(PRESET, variant="plus").items())
    chosen = dataclasses.asdict(Choices())
    assert {name: package[name] for name in chosen} == chosen
    assert Choices.read(*DEFAULTS).settings() == {}
    assert Choices.read(0.2, *DEFAULTS[1:]).settings() == {"max_mask_ratio": 0.2}
    blocks = build(handlers, [])
    score = next(one for one in blocks.fns.values() if one.fn == handlers.page)
    assert [one.value for one in score.inputs[3:]] == [*DEFAULTS[:-2], BY_FORM, "", None] == values_of(Choices())
    assert Choices.read(*DEFAULTS[:-2], BY_FORM, "", "") == Choices()
    own = Choices.read(*DEFAULTS[:-2], OWN_PROMPT, "", "{context} \ud83d")
    assert own.task == "{context} \ufffd"
    assert Choices.read(*values_of(own)) == own
    parameters = blocks.get_api_info()["named_endpoints"]["/score"]["parameters"]
    assert {one["parameter_name"]: one["parameter_default"] for one in parameters[3:]} == chosen
    assert not {"language_model", "encoder", "masked_language_model", "store", "device"} & set(chosen)


def test_presets(monkeypatch):
    monkeypatch.setenv("MARS_PRESET", "paper")
    assert space_preset() == "paper"
    monkeypatch.delenv("MARS_PRESET")
    monkeypatch.setattr("mars_score.space.choices.find_spec", lambda name: None)
    assert space_preset() == "base"


# How much and how often


def test_rate_limit_waits_and_forgets():
    now = [0.0]
    limit = RateLimit(2, 60, lambda: now[0])
    limit.check("a")
    now[0] = 10
    limit.check("a")
    with pytest.raises(Refused, match="wait 51 seconds"):
        limit.check("a")
    limit.check("b")
    now[0] = 60
    limit.check("a")
    now[0] = 1000
    limit.check("c")
    assert set(limit._times) == {"c"}


@pytest.mark.parametrize("declared", [True, False])
def test_large_bodies_are_refused_early(declared):
    sent, read = [], []

    async def app(scope, receive, send):
        while True:
            message = await receive()
            read.append(message)
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive():
        return {"type": "http.request", "body": b"x" * 60, "more_body": True}

    async def send(message):
        sent.append(message)

    headers = [(b"content-length", b"1000")] if declared else []
    asyncio.run(BodyLimit(app, 100)({"type": "http", "headers": headers}, receive, send))
    assert [one["status"] for one in sent if "status" in one] == [413]
    assert len(read) == (0 if declared else 2)


def test_the_cost_of_a_batch_is_limited():
    rows = [["r" * 600]] * 60
    check_batch(["c"], rows, planned=False)
    with pytest.raises(Refused, match="with planning"):
        check_batch(["c"], rows, planned=True)
    with pytest.raises(Refused, match="All contexts"):
        check_batch(["c" * 5_000] * 41, [["r"]], planned=False)


# Files


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_further_references(tmp_path, delimiter):
    text = "\ufeffprediction,Reference,reference_2,context\np,r,s,c\nq,t,,\n".replace(",", delimiter)
    batch = read_upload(upload(tmp_path, text), use_context=True)
    assert batch.references == (("r", "s"), ("t",))
    assert batch.contexts == ("c", "")


def test_jsonl_is_known_by_its_content_not_its_name(tmp_path):
    row = {"prediction": "p", "reference": ["r", "s"], "context": ["a", "b"]}
    batch = read_upload(upload(tmp_path, json.dumps(row), "x.csv"), use_context=True)
    assert (batch.references, batch.contexts) == ((("r", "s"),), ("a\nb",))


def test_contexts_may_be_missing_if_they_are_not_used(tmp_path):
    path = upload(tmp_path, "prediction,reference\np,r\n")
    assert read_upload(path, use_context=False).contexts == ("",)
    with pytest.raises(Refused, match="untick"):
        read_upload(path, use_context=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "choose"),
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"prediction,reference,context\n", "no rows"),
        (b"prediction,reference,context\na,b\n", "Row 1 has 2 cells"),
        (b"a,b\n1,2\n", "no column 'prediction'"),
        (b"prediction,reference,context\np,,c\nq,r,c\n", "Row 1, column 'reference' holds a blank reference"),
        (b"prediction,context\np,\n", "Row 1: Please give a reference"),
        (b"\xff\xfe\x00bad", "UTF-8"),
        (b"\x80\x04\x95\x10\x00\x00cos\nsystem\n", "UTF-8"),  # a pickle
        (b"PK\x03\x04\x00\x00a,b\nc", "cells|column|read"),
        (b'prediction,reference,context\n"unclosed', "cells|read"),
        (b"x" * 200_000 + b",y\n", "column|no rows|read"),
        (b'{"prediction": "p"', "Line 1:"),
        (b'{"prediction": 3, "reference": "r", "context": "c"}', "must be a string"),
        (b'{"prediction": "p", "reference": {}, "context": "c"}', "Row 1, column 'reference'"),
        (b'{"a":' * 100_000, "nested|not JSON"),
        (b'{"prediction": ' + b"9" * 5000 + b"}", "Exceeds|must be"),
        (b"prediction,reference,context\n" + b"p,r,c\n" * 201, "201 rows"),
        (b"x" * 1_000_001, "1,000,001 bytes"),
        (b"prediction,reference,context\np," + b"r" * 601 + b",c\n", "Row 1: A reference has 601"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, message):
    path = content if content is None else upload(tmp_path, content)
    with pytest.raises(Refused, match=message) as caught:
        read_upload(path, use_context=True)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\uff1d1"])
def test_formulas_are_neutralised(text):
    assert downloads.harmless(text) == f"'{text}"


def test_downloads_hold_the_texts_and_are_deleted(monkeypatch):
    rows = [{"row": 1, "mars": -0.1, "prediction": '=cmd|"x", y'}, {"row": 2, "mars": 0.5, "prediction": "plain"}]
    store = downloads.Downloads()
    as_csv, as_jsonl = map(Path, store.write(rows))
    read = list(csv.DictReader(as_csv.read_text(encoding="utf-8").splitlines()))
    assert [one["prediction"] for one in read] == ['\'=cmd|"x", y', "plain"]
    assert read[0]["mars"] == "-0.1"
    assert [json.loads(line) for line in as_jsonl.read_text(encoding="utf-8").splitlines()] == rows
    monkeypatch.setattr(downloads, "_KEPT_SECONDS", -1)
    store.write([])
    assert not as_csv.exists()


# Answers and pages


def test_ranks_and_headline():
    assert Metric("x", (0.5, 0.9, 0.5)).ranks == (2, 1, 2)
    one = answer("x y", "a b c")
    assert one.order == [1, 0]
    assert "so do BLEU and ROUGE-L" in headline(one)
    assert "Add more" in headline(answer("a"))


def test_an_answer_as_data():
    data = json.loads(json.dumps(answer("x y", "a b c").to_dict()))
    assert [one["candidate"] for one in data["ranking"]] == ["a b c", "x y"]
    for one in data["ranking"]:
        assert set(one) == {"candidate", "index", "mars", "recall", "bleu", "rouge_l", "terms"}
        assert sum(term["weight"] * term["value"] for term in one["terms"]) == pytest.approx(one["mars"])
    assert len(data["references"][0]["similarities"]) == 2
    assert (data["samples"], data["asked"]) == ([], {"task": "data", "by_form": True, "prompt": ""})
    assert data["signature"].startswith("mars|")


def test_the_terms_of_a_score_are_shown():
    one = answer("a b x y")
    terms = Term("references", 0.5, 0.75), Term("context", -0.25, 0.25), Term("samples", 0.5, -0.2)
    sum_ = "0.75 &times; references 0.500 + 0.25 &times; context -0.250 &minus; 0.20 &times; samples 0.500"
    nothing = Term("repetition", 0.0, -0.3)  # a term that adds nothing is not shown
    for shown, text in ((terms, f"MARS = {sum_}<"), (terms[:1], "")):
        row = dataclasses.replace(one.rows[0], terms=(*shown, nothing))
        page = ranking_page(dataclasses.replace(one, rows=(row,)))
        assert "".join(re.findall("MARS = [^<]*<", page)) == text
        named = [*METRICS, *(term.name for term in shown if text)]
        assert re.findall("<dt>(.*?)</dt>", page) == named


def test_every_term_has_its_meaning():
    rows = [
        *answer("a b x y", context=STORY, max_mask_ratio=0.2).rows,
        *answer("a b", context="area=riverside").rows,
    ]
    with_likelihood = MarsScorer(PRESET, variant="plus").score(["a"], ["a b"], [STORY]).rows
    found = {term.name for row in (*rows, *with_likelihood) for term in row.terms}
    assert found | set(FEATURES) | {"contradiction"} == set(TERMS)  # the last: tests/test_contradiction.py


def test_every_task_is_put_in_plain_words():
    assert set(NOT_ASKED) == set(UNSAMPLED_TASKS)
    assert {*ASKED, *NOT_ASKED} == set(TASKS)


def test_samples_are_shown_with_what_was_asked():
    one = answer("He ran.", "A cat sat.", context=DIALOGUE)
    assert len(one.samples) == Choices.samples
    assert one.asked.task == "dialogue"
    assert one.asked.prompt.endswith("today.\nB:")
    page = compared_page(one)
    assert page.count("<small>sample</small>") == len(one.samples)
    assert ASKED["dialogue"] in page
    assert escape(one.asked.prompt) in page
    shown = [
        [float(cell) for cell in re.findall(r">(-?\d\.\d\d)</td>", row)]
        for row in page.split("<tr>")[-len(one.samples) :]
    ]
    by_place = [[sample.similarity for sample in one.rows[index].samples] for index in one.order]
    assert shown == [pytest.approx(values, abs=0.006) for values in zip(*by_place, strict=True)]
    data = one.to_dict()
    assert [sample["text"] for sample in data["samples"]] == list(one.samples)
    assert data["samples"][0]["similarities"] == [row.samples[0].similarity for row in one.rows]
    assert data["asked"] == dataclasses.asdict(one.asked)


@pytest.mark.parametrize(
    ("context", "task", "text"),
    [
        (DIALOGUE, "story", ASKED["story"]),
        (STORY, "Describe <b>{context}</b>", "by your prompt"),
        (STORY, None, "settings changes it"),
    ],
)
def test_what_was_asked_is_said(context, task, text):
    page = compared_page(answer("He ran.", context=context, task=task))
    assert text in page
    assert "Its prompt" in page
    assert ("settings changes it" in page) == (task is None)
    assert "<b>It" not in page


@pytest.mark.parametrize(
    ("context", "text"),
    [("Did it rain?", "taken for a question"), ("rain", "taken for data"), (" ", "no context")],
)
def test_why_nothing_was_asked_is_said(context, text):
    page = compared_page(answer("He ran.", context=context))
    assert text in page
    assert "Its prompt" not in page


@pytest.mark.parametrize("choices", [{"samples": 0}, {"use_context": False}])
def test_without_samples_nothing_was_asked(choices):
    one = answer("He ran.", context=STORY, **choices)
    assert (one.asked, one.samples) == (None, ())
    assert "mars-asked" not in compared_page(one)


def test_hostile_texts_are_escaped_everywhere():
    one = answer(HOSTILE, "a", references=(HOSTILE,), context=HOSTILE)
    sampled = dataclasses.replace(one.rows[0], samples=(SampleScore(HOSTILE, 0.5),))
    one = dataclasses.replace(one, rows=(sampled, sampled), asked=Asked(HOSTILE, by_form=True, prompt=HOSTILE))
    for page in (ranking_page(one), compared_page(one), table_page([HOSTILE], [[HOSTILE]], HOSTILE)):
        assert "<img" not in page
        assert "<script" not in page
        assert not re.search(r"=\"[^\"]*<", page)


def test_masked_words_and_infills():
    template = Template("He went home today.", ((2, 7), (12, 18)))
    pieces = [(piece.text, piece.blank) for piece in template.pieces]
    assert infilled_spans(pieces, "He ran home now.") == [
        ("He", False), (" ran", True), (" home", False), (" now", True), (".", False)
    ]  # fmt: skip
    assert "".join(part for part, _ in infilled_spans(pieces, "quite other text")) == "quite other text"
    one = answer("a", references=("He went home today.",), max_mask_ratio=0.6)
    assert "".join(text for text, mark in masked_words(one) if mark == "masked")
    assert "New words are underlined" in compared_page(one)
    unmasked = answer("a", references=("He went home today.",))
    assert masked_words(unmasked) == []
    assert "underlined" not in compared_page(unmasked)


def test_notices_are_shown_without_row_numbers():
    notice = "blank candidates score 0.0: 2 of 3 rows (0, 1)"
    assert plain_notice(notice, "row") == "Blank candidates score 0.0 (2 of 3 rows)."
    assert plain_notice("other", "row") == "other"


def test_histogram_counts_all_scores():
    page = histogram_page([-0.2, 0.05, 0.5, 1.0])
    assert [int(found) for found in re.findall(r"<i>(\d+)</i>", page)] == [2, 1, 1]
    assert "0.000" in histogram_page([])


def words(text):
    return re.findall(r"\w+", text.lower())


def share(example, candidate):
    """Of the words of a candidate, those that the first reference has."""
    own, reference = words(example.question.candidates[candidate]), words(example.question.references[0])
    return sum(word in reference for word in own) / len(own)


def test_examples_are_as_their_lines_say():
    marathon, piano, ferry, letter, interview, tomatoes = examples = read_examples(ROOT / "examples")
    assert share(marathon, 1) == 0
    assert share(marathon, 2) > 0.5
    assert "film" in words(marathon.question.candidates[2])
    assert task_of(marathon.question.context, [], 16) == "dialogue"
    assert share(piano, -1) > 0.5
    assert {"swam", "lake"} <= set(words(piano.question.candidates[-1]))
    assert len(ferry.question.references) == 2
    assert "goals" in words(ferry.question.candidates[-1])
    assert sorted(words(letter.question.candidates[-1])) == sorted(words(letter.question.references[0]))
    assert share(interview, 2) > 0.5
    assert tomatoes.question.references == ()
    assert tomatoes.question.candidates[2] in tomatoes.question.context
    for one in examples:
        limits.check_texts(one.question.context, one.question.references, one.question.candidates)
    assert read_examples(ROOT / "missing") == []


def test_the_picture_is_of_this_page(handlers):
    """Its signature, examples and labels are today's; the browser tests compare all of its text."""
    picture = json.loads((ROOT / "docs" / "pictures" / "space-desktop.json").read_text(encoding="utf-8"))
    assert any(f"|variant:{DEFAULT_VARIANT}|" in line for line in picture)
    examples = read_examples(ROOT / "examples")
    texts = [examples[0].lesson, examples[0].question.context, *(one.title for one in examples)]
    page = next(one for one in build(handlers, examples).fns.values() if one.fn == handlers.page)
    assert {*texts, *(one.label for one in page.inputs[:3])} <= set(picture)


# What the buttons and the API do


def test_a_question_is_answered(handlers):
    page = handlers.page(VISITOR, "He was late.", "He ran home quickly.", "a\n\nx", 0.6, *DEFAULTS[1:])
    assert "1 blank line" in page.notices
    assert page.ranking.count("mars-card") == 2
    assert page.masked["visible"]
    assert ("home", "masked") in page.masked["value"]
    assert "masked</small>" in page.compared
    assert page.signature.startswith("mars|")
    assert page.fool["value"] in (0, 1)
    assert len(page.fool["choices"]) == 2


@pytest.mark.parametrize("api", [False, True])
def test_refusals_are_escaped_for_the_page_and_plain_for_programs(handlers, api):
    settings = DEFAULTS[0], HOSTILE, *DEFAULTS[2:]
    call = partial(handlers.api, request=VISITOR) if api else partial(handlers.page, VISITOR)
    with pytest.raises(gr.Error, match="A setting cannot be used") as caught:
        call("c", ["a"], ["x"], *settings)
    assert ("<img" in caught.value.message) == api
    assert ("&lt;img" in caught.value.message) != api
    assert ("&#x27;" in caught.value.message) != api


@pytest.mark.parametrize("fault", [RuntimeError("/root/secret"), ModelUnavailableError("/root/secret")])
def test_unexpected_errors_show_no_details(handlers, monkeypatch, fault):
    def score(*_):
        raise fault

    monkeypatch.setattr(MarsScorer, "score", score)
    with pytest.raises(gr.Error, match="again") as caught:
        handlers.api("c", ["a"], ["x"], request=VISITOR)
    assert "secret" not in caught.value.message


def test_each_visitor_has_a_rate_limit(engine):
    handlers = Handlers(engine, single=RateLimit(1, 60))
    handlers.api("c", ["a"], ["x"], request=VISITOR)
    with pytest.raises(gr.Error, match="wait"):
        handlers.api("c", ["a"], ["x"], request=VISITOR)
    handlers.api("c", ["a"], ["x"], request=OTHER)


def test_a_file_is_scored_in_chunks(handlers, tmp_path):
    lines = "".join(f"r{number},r{number},c\n" for number in range(19))
    path = upload(tmp_path, f"prediction,reference,context\n{lines} ,r19,c\n")
    steps = []
    with pytest.warns(MarsWarning, match="blank candidates"):
        *_, last = handlers.batch(VISITOR, lambda step, **_: steps.append(step), path, *DEFAULTS)
    assert steps == [(0, 20), (8, 20), (16, 20), (20, 20)]
    page, as_csv, as_jsonl, signature = last
    assert "mean MARS score" in page
    assert "mars-notices" in page
    written = [json.loads(line) for line in Path(as_jsonl["value"]).read_text(encoding="utf-8").splitlines()]
    assert [row["recall"] for row in written] == [pytest.approx(1)] * 19 + [0]
    assert written[-1]["mars"] == 0
    lowest = re.findall(r'title="row of the file">(\d+)<', page)
    assert lowest[0] == "20"
    assert len(lowest) == 5
    assert "A blank candidate scores 0." in page
    assert len(Path(as_csv["value"]).read_text(encoding="utf-8").splitlines()) == 21
    assert signature["value"].startswith("mars|")


def test_the_sample_and_its_preview(handlers):
    path = handlers.sample()
    assert Path(path).read_text(encoding="utf-8") == SAMPLE
    assert "6 rows" in handlers.preview(path, True)
    assert handlers.preview(None, True) == ""


@pytest.mark.slow
def test_first_requests_from_several_threads_of_a_new_process(tmp_path):
    """While transformers is being imported in one thread, its lazy imports fail in another."""
    for one in tiny_models.tiny_gpt2(dtype=torch.float32):
        one.save_pretrained(tmp_path / "model")
    tiny_models.tiny_encoder(dtype=torch.float32).save(str(tmp_path / "encoder"))
    code = f"""
from concurrent.futures import ThreadPoolExecutor
from mars_score import MarsScorer
def score(number):
    scorer = MarsScorer("mini", language_model={str(tmp_path / "model")!r}, encoder={str(tmp_path / "encoder")!r},
        variant="plus")
    return scorer.score([f"A cat {{number}}."], [f"A dog sat {{number}}."], ["It rained."]).score
with ThreadPoolExecutor(4) as pool:
    assert len(list(pool.map(score, range(4)))) == 4
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr


def test_warm_up_and_arrival(engine, handlers):
    example = Example("A bus", "Look at it.", QUESTION)
    assert "Press" in handlers.first_page(example).ranking
    engine.warm_up([QUESTION])
    assert engine.ready.wait(60)
    assert "mars-card" in handlers.first_page(example).ranking


def test_only_score_is_public(handlers):
    info = build(handlers, read_examples(ROOT / "examples")).get_api_info()
    assert set(info["named_endpoints"]) == {"/score"}


def test_without_gradio_the_message_says_what_to_install():
    code = "import sys; sys.modules['gradio'] = None; import app"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last == "ImportError: gradio is not installed; run: pip install 'mars-score[space]'"
