"""The parts of the Space, with tiny models and without a browser."""

import json
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from mars_score.errors import ModelUnavailableError
from mars_score.metrics.template import Template
from mars_score.scorer import MarsScorer
from mars_score.scoring.row import Term
from mars_score.settings import resolve_settings
from mars_score.space import questions
from mars_score.space.answer import METRICS, Engine
from mars_score.space.handlers import BY_FORM, Handlers
from mars_score.space.layout import build
from mars_score.space.limits import BODY_BYTES, Allowance, Gate, Refused, Work
from mars_score.space.pages import TERMS, compared_page, headline, ranking_page, ranks_of
from mars_score.space.questions import (
    DEFAULTS,
    PRESET,
    SETTINGS,
    Question,
    read_examples,
    read_question,
)

pytestmark = pytest.mark.usefixtures("tiny_space")

ROOT = Path(__file__).parent.parent
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script> ${alert(3)} {{value}}'
REST = ["", BY_FORM, DEFAULTS["reference_aggregation"], DEFAULTS["use_context"]]  # samples, and the controls
STORY = "It had been raining for three days."


def visitor(address="203.0.113.1", session="any"):
    return SimpleNamespace(session_hash=session, client=SimpleNamespace(host=address))


@pytest.fixture
def handlers():
    return Handlers(Engine())


def answer(*candidates, references=("a b c",), context="c", **settings):
    return Engine().answer(Question(context, references, candidates, **settings))


# What a visitor types


def test_each_line_is_a_text():
    question = read_question(" It rained.\nA lot. ", "One.\r\nTwo.\n", " a \n\nb\n\u200b")
    assert question == Question(
        " It rained.\nA lot. ", ("One.", "Two."), ("a", "b"), notices=("2 blank lines were left out.",)
    )
    assert "context is empty" in read_question("\u200b", "r", "c").notices[0]
    assert read_question("a\0b", "\ud83d r", "x") == Question("a\ufffdb", ("\ufffd r",), ("x",))


@pytest.mark.parametrize(
    ("texts", "settings", "message"),
    [
        (("", "", "x"), {}, "a reference, which is"),
        (("c", "r", " \n "), {}, "at least one candidate"),
        ((" ", None, ["x"]), {}, "or a context"),
        ((3, "r", "x"), {}, "context must be a text"),
        (("c", {"a": 1}, "x"), {}, "references must be a list"),
        (("c", "r", [1]), {}, "candidates must be a list"),
        (("c" * 5_001, "r", "x"), {}, "5,001 characters"),
        (("c", "r" * 601, "x"), {}, "at most 600"),
        (("c", "r", "x" * 1_501), {}, "at most 1,500"),
        (("c", "r\n" * 5, "x"), {}, "5 references"),
        (("c", "r", ["x"] * 13), {}, "13 candidates"),
        (("c", "r", "x", "s\n" * 5), {}, "5 samples"),
        (("c", "", "x"), {"use_context": False}, "Without references the context has to count"),
        (("c", "", "x"), {"paper": True}, "needs references"),
        (("c", "r" * 600, "x"), {"paper": True}, "For the paper's MARS: all references together have 600"),
        (("c", "r", "x"), {"reference_aggregation": "other"}, "A setting cannot be used"),
        (("c", "r", "x"), {"paper": "true"}, "A setting cannot be used"),
        (("c", "r", "x"), {"task": "Describe {context}"}, "A setting cannot be used"),
        (("c", "r", "x"), {"task": ["story"]}, "A setting cannot be used"),
        (("c", "r", "x"), {"encoder": "../evil"}, "A setting cannot be used: there is no encoder here"),
    ],
)
def test_bad_questions_are_refused(texts, settings, message):
    with pytest.raises(Refused, match=message):
        read_question(*texts, settings=settings)


def test_defaults_are_those_of_the_package(handlers):
    """In the code, on the page and in the API; none is written down a second time."""
    package = dict(resolve_settings(PRESET, variant="plus").items())
    assert {name: package[name] for name in SETTINGS} == Question("", ("r",), ()).settings
    examples = read_examples(ROOT / "examples")
    papers = [replace(example.question, paper=True) for example in examples if example.question.references]
    assert len(papers) == len(examples) - 1 > 0  # the paper's MARS takes all that have references
    assert read_examples(ROOT / "missing") == []
    page = build(handlers, examples)
    score = next(event for event in page.fns.values() if event.fn == handlers.page)
    assert [control.value for control in score.inputs[4:]] == REST[1:]
    endpoints = page.get_api_info()["named_endpoints"]
    assert set(endpoints) == {"/score"}
    names = [parameter["parameter_name"] for parameter in endpoints["/score"]["parameters"]]
    assert names == ["context", "references", "candidates", "settings", "samples"]


def test_presets(monkeypatch):
    monkeypatch.setenv("MARS_PRESET", "paper")
    assert questions.space_preset() == "paper"
    monkeypatch.delenv("MARS_PRESET")
    monkeypatch.setattr(questions, "find_spec", lambda name: None)
    assert questions.space_preset() == "base"


# How much, how often and how long


def test_an_allowance_waits_and_forgets():
    now = [0.0]
    allowance = Allowance(2, 60, "requests", lambda: now[0])
    allowance.charge("a")
    now[0] = 10
    allowance.check("a")
    allowance.charge("a", 1.5)
    with pytest.raises(Refused, match=r"2 requests in 60 seconds are the limit here\. Please wait 51 seconds"):
        allowance.check("a")
    allowance.check("b")
    now[0] = 60
    allowance.check("a")
    now[0] = 1000
    allowance.check("c")
    assert allowance._uses == []


def test_requests_are_limited_in_size_and_number_and_uploads_refused():
    gate = Gate(PlainTextResponse("fine"), Allowance(3, 60, "requests"))

    def status(host="203.0.113.1", method="POST", path="/gradio_api/queue/join", **sent):
        return TestClient(gate, client=(host, 1)).request(method, path, **sent).status_code

    assert status(content=b"x" * (BODY_BYTES + 1)) == 413
    assert status(content=iter([b"x"])) == status(headers={"content-length": "-1"}) == 411
    assert status(path="/gradio_api/upload/") == 403
    assert [status() for _ in range(4)] == [200] * 3 + [429]
    assert status("203.0.113.2") == 200
    networks = ["2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::7", "2001:db8:1:2::8", "2001:db8:1:3::1"]
    assert [status(host) for host in networks] == [200] * 3 + [429, 200]
    assert status(method="GET", content=iter([b"x"])) == 200


def test_work_is_counted_by_address_and_stopped_when_it_takes_long():
    """Whatever the session, in the page and in the API."""
    handlers = Handlers(Engine(), Work(Allowance(0.001, 60, "seconds of computing")))
    handlers.api("c", ["a"], ["x"], request=visitor(session="one"))
    for call in (
        partial(handlers.api, "c", ["a"], ["x"], request=visitor(session="two")),
        partial(handlers.page, visitor(session="three"), "c", "a", "x", *REST),
    ):
        with pytest.raises(gr.Error, match="wait"):
            call()
    handlers.api("c", ["a"], ["x"], request=visitor("203.0.113.2"))
    with pytest.raises(gr.Error, match="longer than 0 seconds, and was stopped"):
        Handlers(Engine(), Work(call_seconds=0)).api("c", ["a"], ["not yet scored"], request=visitor())


def test_work_stops_when_the_client_leaves():
    """Of a call that would go on for a minute, on a real server."""
    started, stopped = threading.Event(), threading.Event()

    class Endless(Engine):
        def answer(self, question, progress):
            started.set()
            try:
                for step in range(600):
                    time.sleep(0.1)
                    progress("step", step, 600)
            finally:
                stopped.set()

    page = build(Handlers(Endless()), [])
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False, show_error=False)
    try:
        texts = {"data": ["c", ["a"], ["x"], None, None]}
        event = httpx.post(f"{url}gradio_api/call/score", json=texts).json()["event_id"]
        with httpx.stream("GET", f"{url}gradio_api/call/score/{event}", timeout=30):
            assert started.wait(10)
            assert not stopped.wait(1)
        assert stopped.wait(10)
    finally:
        page.close()


# Answers and pages


def test_the_papers_mars_is_a_rival():
    scored = answer("x y", "a b c", context=STORY, paper=True)
    direct = MarsScorer(PRESET, variant="paper").score(["x y", "a b c"], ["a b c"] * 2, [STORY] * 2)
    assert list(scored.scores) == list(METRICS) == ["MARS plus", "MARS paper", "BLEU", "ROUGE-L"]
    assert scored.scores["MARS paper"] == pytest.approx(direct.scores)
    assert scored.signature.splitlines()[1] == str(direct.signature)
    data = json.loads(json.dumps(scored.to_dict()))
    assert [line["candidate"] for line in data["ranking"]] == ["a b c", "x y"]
    for line in data["ranking"]:
        assert set(line) == {"candidate", "index", "mars", "paper", "bleu", "rouge_l", "terms"}
        assert sum(term["weight"] * term["value"] for term in line["terms"]) == pytest.approx(line["mars"])
        assert line["paper"] == direct.scores[line["index"]]
    assert data["augmented"][0]["reference"] == "a b c"
    assert "MARS paper: reference" in compared_page(scored)


@pytest.mark.parametrize(
    ("rivals", "said"),
    [
        ({}, "MARS plus puts “a” first, by the context."),
        ({"MARS paper": (1, 0), "BLEU": (1, 1)}, "first; MARS paper and BLEU agree."),
        ({"MARS paper": (0, 1), "BLEU": (1, 0)}, "first; BLEU agrees; MARS paper puts “b” first."),
        ({"MARS paper": (0, 1), "BLEU": (0, 1)}, "first; MARS paper and BLEU put “b” first."),
        (dict.fromkeys(("MARS paper", "BLEU", "ROUGE-L"), (1, 0)), "first; MARS paper, BLEU and ROUGE-L agree."),
    ],
)
def test_ranks_and_headline(rivals, said):
    assert ranks_of([0.5, 0.9, 0.5]) == [2, 1, 2]
    page = headline(replace(answer("a", "b"), scores={"MARS plus": (0.9, 0.1), **rivals}))
    assert re.sub("</?b>", "", page).endswith(said)
    assert "Add more" in headline(answer("a"))


def test_the_terms_of_a_score_are_shown():
    scored = answer("a b x y")
    terms = Term("references", 0.5, 0.75), Term("context", -0.25, 0.25), Term("repetition", 0.5, -0.2)
    sum_ = "0.75 &times; references 0.500 + 0.25 &times; context -0.250 &minus; 0.20 &times; repetition 0.500"
    nothing = Term("likelihood", 0.0, -0.3)  # a term that adds nothing is not shown
    for shown, text in ((terms, f"MARS plus = {sum_}<"), (terms[:1], "")):
        row = replace(scored.plus.rows[0], terms=(*shown, nothing))
        page = ranking_page(replace(scored, plus=replace(scored.plus, rows=(row,))))
        assert "".join(re.findall("MARS plus = [^<]*<", page)) == text
        names = list(scored.scores) + [term.name for term in shown if text]
        assert re.findall("<dt>(.*?)</dt>", page) == names


def test_every_term_has_its_meaning():
    answers = answer("a b x y", context=STORY), answer("a b", context="area=riverside")
    names = {term.name for scored in answers for row in scored.plus.rows for term in row.terms}
    assert {"references", "context", "likelihood"} <= names <= set(TERMS)


def test_hostile_texts_are_escaped_everywhere():
    scored = answer(HOSTILE, "a", references=(HOSTILE,), context=HOSTILE, paper=True)
    for page in (ranking_page(scored), compared_page(scored)):
        assert "<img" not in page
        assert "<script" not in page
        assert not re.search(r"=\"[^\"]*<", page)


def test_what_the_language_model_wrote_is_underlined():
    scored = answer("a", references=("He went home today.",), paper=True)
    [row] = scored.paper.rows
    [reference] = row.references
    template = Template("He went home today.", ((2, 7), (12, 18)))
    infill = replace(reference.augmented.augmentations[0], template=template, text="He ran home <now>.")
    augmented = replace(reference.augmented, augmentations=(infill,))
    row = replace(row, references=(replace(reference, augmented=augmented, similarities=(0.5, 0.7)),))
    page = compared_page(replace(scored, paper=replace(scored.paper, rows=(row,))))
    assert "masked</small>He <u>ran</u> home <u>&lt;now&gt;.</u></th>" in page
    assert "new words are underlined" in page


# What the buttons and the API do


def test_a_question_is_answered_and_the_papers_mars_added(handlers):
    page = handlers.page(visitor(), "He was late.", "He ran home quickly.", "a\n\nx", *REST)
    assert "1 blank line" in page.notices
    assert page.ranking.count("mars-card") == 2
    assert "MARS paper" not in page.ranking
    assert page.paper["visible"]
    page = handlers.paper(visitor(), page.question)
    assert "MARS paper" in page.ranking
    assert "masked</small>" in page.compared
    assert not page.paper["visible"]


def test_notices_are_without_the_numbers_of_rows(handlers):
    assert "(1 of 1 candidate)" in handlers.page(visitor(), "é" * 1_400, "r", "c", *REST).notices


def test_settings_and_samples_count(handlers):
    page = handlers.page(visitor(), STORY, "a b c", "a b x", "a b x", "story", "mean", True)
    direct = MarsScorer(PRESET, variant="plus", task="story", reference_aggregation="mean")
    assert page.signature == str(direct.score(["a b x"], ["a b c"], [STORY], samples=[["a b x"]]).signature)


def test_without_references_the_context_counts(handlers):
    page = handlers.page(visitor(), STORY, "", "One.\nTwo.", *REST)
    assert "no reference" in page.notices
    assert "BLEU" not in page.ranking
    assert not page.paper["visible"]
    assert page.signature == str(MarsScorer(PRESET, variant="plus").score(["One."], None, [STORY]).signature)


@pytest.mark.parametrize("api", [False, True])
def test_refusals_are_escaped_for_the_page_and_plain_for_programs(handlers, api):
    settings = {"reference_aggregation": HOSTILE}
    call = partial(handlers.api, "c", ["a"], ["x"], settings, request=visitor()) if api else None
    call = call or partial(handlers.page, visitor(), "c", "a", "x", "", BY_FORM, HOSTILE, True)
    with pytest.raises(gr.Error, match="A setting cannot be used") as refusal:
        call()
    assert ("<img" in refusal.value.message) == api
    assert ("&lt;img" in refusal.value.message) != api


@pytest.mark.parametrize("fault", [RuntimeError("/root/secret"), ModelUnavailableError("/root/secret")])
def test_unexpected_errors_show_no_details(fault):
    class Broken(Engine):
        def answer(self, *_):
            raise fault

    with pytest.raises(gr.Error, match="again") as error:
        Handlers(Broken()).api("c", ["a"], ["x"], request=visitor())
    assert "secret" not in error.value.message


def test_examples_are_answered_before_they_are_asked_for():
    """Also by the paper's MARS, and without a visitor's time."""
    engine, question = Engine(), Question(STORY, ("She took a bus.",), ("A bus.",))
    allowance = Allowance(1, 60, "seconds of computing")
    allowance.charge("203.0.113.1")
    handlers = Handlers(engine, Work(allowance))
    assert "Press" in handlers.arrive(question).ranking
    engine.prepare([replace(question, paper=True), read_question(STORY, "", "A bus.")])
    assert "MARS paper" in handlers.arrive(question).ranking
    assert "MARS paper" in handlers.page(visitor(), STORY, "She took a bus.", "A bus.", *REST).ranking
    assert "mars-card" in handlers.page(visitor(), STORY, "", "A bus.", *REST).ranking
    with pytest.raises(gr.Error, match="wait"):
        handlers.page(visitor(), STORY, "She took a bus.", "A bus.", "", "story", *REST[2:])
    with pytest.raises(gr.Error, match="wait"):
        handlers.page(visitor(), STORY, "She took a bus.", "A bus.", "A sample.", *REST[1:])


# New processes


@pytest.mark.slow
def test_first_requests_from_several_threads_of_a_new_process(named_models):
    """While transformers is being imported in one thread, its lazy imports fail in another."""
    code = f"""
from concurrent.futures import ThreadPoolExecutor
from mars_score import MarsScorer
def score(number):
    scorer = MarsScorer("mini", variant="plus", **{named_models!r})
    return scorer.score([f"A cat {{number}}."], [f"A dog sat {{number}}."], ["It rained."]).score
with ThreadPoolExecutor(4) as pool:
    assert len(list(pool.map(score, range(4)))) == 4
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr


def test_without_gradio_the_message_says_what_to_install():
    code = "import sys; sys.modules['gradio'] = None; import app"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last == "ImportError: gradio is not installed; run: pip install 'mars-score[space]'"
