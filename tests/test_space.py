"""The parts of the Space, without models and without a browser."""

import asyncio
import csv
import dataclasses
import io
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import gradio as gr
import pytest
from fakes import FakeScorer

from mars_score.errors import ModelUnavailableError
from mars_score.masking.template import Template
from mars_score.result import Term
from mars_score.space import downloads, limits
from mars_score.space.answer import Answer, Metric, infilled_spans, plain_notice
from mars_score.space.choices import Choices
from mars_score.space.engine import Engine, space_preset
from mars_score.space.examples import read_examples
from mars_score.space.handlers import Handlers, batch_rows, friendly, show
from mars_score.space.inputs import Question, read_question
from mars_score.space.layout import build
from mars_score.space.limits import BodyLimit, RateLimit, Refused, check_batch
from mars_score.space.pages import augmented_page, headline, histogram_page, masked_words, ranking_page, table_page
from mars_score.space.uploads import SAMPLE, read_upload

ROOT = Path(__file__).parent.parent
DEFAULTS = (0.6, "none", "best", 0.8, "max", True)
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script> ${alert(3)} {{value}}'


@pytest.fixture
def engine():
    return Engine("mini", FakeScorer)


@pytest.fixture
def handlers(engine):
    return Handlers(engine)


class Request:
    def __init__(self, session="one"):
        self.session_hash, self.client = session, None


def upload(tmp_path, content, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


# What a visitor types


def test_texts_are_one_a_line():
    question = read_question(" It rained.\nA lot. ", "One.\r\nTwo.\n", " a \n\nb\n")
    assert question.context == " It rained.\nA lot. "
    assert question.references == ("One.", "Two.")
    assert question.candidates == ("a", "b")
    assert question.notices == ("1 blank line was left out.",)


def test_an_empty_context_is_noticed():
    assert "context is empty" in read_question(" ", "r", "c").notices[0]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("c", "", "x"), "at least one reference"),
        (("c", "r", " \n "), "at least one candidate"),
        (("c", None, ["x"]), "at least one reference"),
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
def test_what_is_not_taken_is_said(texts, message):
    with pytest.raises(Refused, match=message):
        read_question(*texts)


def test_halves_of_characters_and_nul_do_no_harm():
    assert read_question("a\0b", "\ud83d r", "x").context == "a\ufffdb"
    assert read_question("", "\ud83d r", "x").references == ("\ufffd r",)


@pytest.mark.parametrize(
    "values",
    [
        (2, *DEFAULTS[1:]),
        (float("nan"), *DEFAULTS[1:]),
        (float("inf"), *DEFAULTS[1:]),
        ("../../etc", *DEFAULTS[1:]),
        (0.6, "evil/model", *DEFAULTS[2:]),
        (0.6, ["none"], *DEFAULTS[2:]),
        (0.6, "none", "best", 0, "max", True),
        (0.6, "none", "best", 0.8, "max", "yes"),
        (0.6, "none", "other", 0.8, "max", True),
    ],
)
def test_settings_out_of_range_are_refused(values):
    with pytest.raises(Refused):
        Choices.read(*values)


def test_defaults_are_those_of_the_package():
    from mars_score.settings import resolve_settings

    assert Choices.read(*DEFAULTS) == Choices()
    assert dict(resolve_settings("mini").items()) | Choices().settings() == dict(resolve_settings("mini").items())


def test_no_model_or_path_can_be_chosen():
    assert not {"language_model", "encoder", "masked_language_model", "store", "device"} & set(
        Choices().settings()
    )


# How often


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


# Files


def test_the_sample_can_be_read(tmp_path):
    batch = read_upload(upload(tmp_path, SAMPLE), use_context=True)
    assert len(batch.candidates) == 6
    assert batch.references[0] == ("She went to work by bus.",)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_further_references(tmp_path, delimiter):
    text = "\ufeffprediction,Reference,reference_2,context\np,r,s,c\nq,t,,\n".replace(",", delimiter)
    batch = read_upload(upload(tmp_path, text), use_context=True)
    assert batch.references == (("r", "s"), ("t",))
    assert batch.contexts == ("c", "")


def test_the_content_says_what_a_file_is_never_its_name(tmp_path):
    row = {"prediction": "p", "reference": ["r", "s"], "context": ["a", "b"]}
    batch = read_upload(upload(tmp_path, json.dumps(row), "x.csv"), use_context=True)
    assert (batch.references, batch.contexts) == ((("r", "s"),), ("a b",))


def test_contexts_may_be_missing_where_they_do_not_count(tmp_path):
    path = upload(tmp_path, "prediction,reference\np,r\n")
    assert read_upload(path, use_context=False).contexts == ("",)
    with pytest.raises(Refused, match="untick"):
        read_upload(path, use_context=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"prediction,reference,context\n", "no rows"),
        (b"prediction,reference,context\na,b\n", "Row 1 has 2 cells"),
        (b"a,b\n1,2\n", "no column 'prediction'"),
        (b"prediction,reference,context\np,,c\n", "blank reference"),
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
def test_files_that_are_not_taken(tmp_path, content, message):
    path = upload(tmp_path, content)
    with pytest.raises(Refused, match=message) as caught:
        read_upload(path, use_context=True)
    assert str(tmp_path) not in str(caught.value)


def test_no_file_is_said():
    with pytest.raises(Refused, match="choose"):
        read_upload(None, use_context=True)


def test_the_cost_of_a_batch_is_limited():
    rows = [["r" * 600]] * 60
    check_batch(["c"], rows, planned=False)
    with pytest.raises(Refused, match="with planning"):
        check_batch(["c"], rows, planned=True)
    with pytest.raises(Refused, match="All contexts"):
        check_batch(["c" * 5_000] * 41, [["r"]], planned=False)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\uff1d1"])
def test_formulas_are_neutralised(text):
    assert downloads.harmless(text) == f"'{text}"


def test_downloads_hold_the_texts(tmp_path):
    rows = [{"row": 1, "mars": -0.1, "prediction": '=cmd|"x", y'}, {"row": 2, "mars": 0.5, "prediction": "plain"}]
    store = downloads.Downloads()
    as_csv, as_jsonl = store.write(rows)
    with open(as_csv, encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [one["prediction"] for one in read] == ['\'=cmd|"x", y', "plain"]
    assert read[0]["mars"] == "-0.1"
    with open(as_jsonl, encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == rows


def test_old_downloads_go(monkeypatch):
    store = downloads.Downloads()
    first, _ = store.write([])
    monkeypatch.setattr(downloads, "_KEPT_SECONDS", -1)
    second, _ = store.write([])
    with pytest.raises(FileNotFoundError):
        Path(first).read_text()
    assert Path(second).read_text() == ""


# Answers and pages


def answer(*candidates, references=("a b c",), context="c"):
    question = Question(context, tuple(references), candidates)
    return Answer.of(question, Engine("mini", FakeScorer).ask(question, Choices()))


def test_ranks_and_headline():
    assert Metric("x", (0.5, 0.9, 0.5)).ranks == (2, 1, 2)
    one = answer("x y", "a b c")
    assert one.order == [1, 0]
    assert "so do BLEU and ROUGE-L" in headline(one)
    assert "Add more" in headline(answer("a"))


def test_an_answer_as_data():
    data = json.loads(json.dumps(answer("x y", "a b c").to_dict()))
    assert [one["candidate"] for one in data["ranking"]] == ["a b c", "x y"]
    assert set(data["ranking"][0]) == {"candidate", "index", "mars", "recall", "bleu", "rouge_l"}
    assert len(data["references"][0]["similarities"]) == 2
    assert data["signature"].startswith("mars|")


def test_what_a_score_is_the_sum_of_is_shown():
    one = answer("a b x y")
    assert "MARS =" not in ranking_page(one)  # the references alone
    terms = Term("references", 0.5, 0.75), Term("context", -0.25, 0.25)
    page = ranking_page(dataclasses.replace(one, rows=(dataclasses.replace(one.rows[0], terms=terms),)))
    assert "MARS = 0.75 &times; references 0.500 + 0.25 &times; context -0.250<" in page


def test_hostile_texts_are_escaped_everywhere():
    one = answer(HOSTILE, "a", references=(HOSTILE,), context=HOSTILE)
    pages = [ranking_page(one), augmented_page(one), table_page([HOSTILE], [[HOSTILE]], HOSTILE)]
    for page in pages:
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
    assert masked_words(answer("a")) == [("Nothing is masked with these settings.", None)]


def test_notices_count_for_people():
    notice = "blank candidates score 0.0: 2 of 3 rows (0, 1)"
    assert plain_notice(notice, "row") == "Blank candidates score 0.0 (2 of 3 rows)."
    assert plain_notice("other", "row") == "other"


def test_histogram_counts_all_scores():
    page = histogram_page([-0.2, 0.05, 0.5, 1.0])
    assert [int(found) for found in re.findall(r"<i>(\d+)</i>", page)] == [2, 1, 1]
    assert histogram_page([])


# What happens when something is pressed


def test_a_question_is_answered(handlers):
    notices, ranking, masked, augmented, signature = handlers.page("c", "a b", "a\n\nx", *DEFAULTS, Request())
    assert "1 blank line" in notices
    assert ranking.count("mars-card") == 2
    assert masked
    assert "a b &lt;c&gt;" not in augmented  # the fake masks nothing
    assert signature.startswith("mars|")


def test_refusals_are_friendly_and_escaped(handlers):
    with pytest.raises(gr.Error, match="at least one candidate"):
        handlers.page("c", "a", "", *DEFAULTS, Request())
    with pytest.raises(gr.Error) as caught:
        handlers.page("c", "a", "x", 0.6, HOSTILE, "best", 0.8, "max", True, Request())
    assert "<img" not in caught.value.message


@pytest.mark.parametrize("fault", [RuntimeError("/root/secret"), ModelUnavailableError("/root/secret")])
def test_faults_give_nothing_away(handlers, monkeypatch, fault):
    monkeypatch.setattr(FakeScorer, "fault", fault)
    with pytest.raises(gr.Error) as caught:
        handlers.api("c", ["a"], ["x"], request=Request())
    assert "secret" not in caught.value.message
    assert "again" in caught.value.message


def test_errors_of_gradio_pass():
    with pytest.raises(gr.Error, match="mine"), friendly():
        raise gr.Error("mine")


def test_visitors_are_limited_one_by_one(engine):
    handlers = Handlers(engine, single=RateLimit(1, 60))
    handlers.api("c", ["a"], ["x"], request=Request("one"))
    with pytest.raises(gr.Error, match="wait"):
        handlers.api("c", ["a"], ["x"], request=Request("one"))
    handlers.api("c", ["a"], ["x"], request=Request("two"))


def test_a_file_is_scored_in_chunks(handlers, tmp_path):
    lines = "".join(f"p{number},r{number} p{number},c\n" for number in range(20))
    path = upload(tmp_path, f"prediction,reference,context\n{lines}")
    steps = []
    seen = list(handlers.batch(path, *DEFAULTS, Request(), lambda step, **_: steps.append(step)))
    assert steps == [(0, 20), (8, 20), (16, 20), (20, 20), (1, 1)]
    page, as_csv, as_jsonl, signature = seen[-1]
    assert "mean MARS score" in page
    with open(as_jsonl["value"], encoding="utf-8") as file:
        assert [json.loads(line)["mars"] for line in file] == [1.0] * 20
    with open(as_csv["value"], encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 20
    assert signature["value"].startswith("mars|")


@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
def test_blank_candidates_of_a_file_score_zero(handlers, tmp_path):
    path = upload(tmp_path, "prediction,reference,context\n ,r,c\nr,r,c\n")
    seen = list(handlers.batch(path, *DEFAULTS, Request(), lambda *_, **__: None))
    assert "mars-notices" in seen[-1][0]
    batch = read_upload(path, use_context=True)
    result = Engine("mini", FakeScorer).score(batch.candidates, batch.references, batch.contexts, Choices())
    assert [row["mars"] for row in batch_rows(batch, result)] == [0.0, 1.0]


def test_preview(handlers, tmp_path):
    assert "6 rows" in handlers.preview(upload(tmp_path, SAMPLE), True)
    assert handlers.preview(None, True) == ""
    assert handlers.sample().endswith("sample.csv")


# The engine


def test_few_scorers_are_kept(engine):
    question = Question("c", ("a",), ("a",))
    for q in range(1, 11):
        engine.ask(question, Choices(q=q / 10))
    assert len(engine._scorers) == 4


def test_the_model_runs_once_at_a_time():
    running, most, lock = [0], [0], threading.Lock()

    class Slow(FakeScorer):
        def score(self, *columns):
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            threading.Event().wait(0.01)
            with lock:
                running[0] -= 1
            return super().score(*columns)

    engine = Engine("mini", Slow)
    question = Question("c", ("a",), ("a",))
    threads = [threading.Thread(target=engine.ask, args=(question, Choices())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_warm_up_and_arrival(engine, handlers):
    question = Question("c", ("a",), ("a",))
    assert "Press" in handlers.first_page(question)[1]
    engine.warm_up([question])
    assert engine.ready.wait(5)
    assert "mars-card" in handlers.first_page(question)[1]


def test_presets(monkeypatch):
    monkeypatch.setenv("MARS_PRESET", "paper")
    assert space_preset() == "paper"
    monkeypatch.delenv("MARS_PRESET")
    monkeypatch.setattr("mars_score.space.engine.find_spec", lambda name: None)
    assert space_preset() == "base"


def test_only_score_is_public(engine, handlers, pytestconfig):
    examples = read_examples(pytestconfig.rootpath / "examples")
    assert len(examples) == 4
    info = build(engine, handlers, examples).get_api_info()
    assert set(info["named_endpoints"]) == {"/score"}
    assert read_examples(pytestconfig.rootpath / "missing") == []


def test_limits_hold_for_the_examples(pytestconfig):
    for example in read_examples(pytestconfig.rootpath / "examples"):
        question = example.question
        limits.check_texts(question.context, question.references, question.candidates)
        assert show(answer(*question.candidates, references=question.references))[1].count("mars-card")
    assert list(csv.reader(io.StringIO(SAMPLE)))


def test_without_gradio_the_message_says_what_to_install():
    code = "import sys; sys.modules['gradio'] = None; import app"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last == "ImportError: gradio is not installed; run: pip install 'mars-score[space]'"
