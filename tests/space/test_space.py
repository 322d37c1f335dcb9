"""The parts of the Space, with tiny models and without a browser."""

import json
import re
import runpy
import subprocess
import sys
import traceback
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import gradio as gr
import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics import Models, make_metric
from mars_score.metrics.plus import TERMS
from mars_score.rows import TASKS, Aspects, Row, Term, Unchecked, Verdict
from mars_score.scorer import MarsScorer
from mars_score.settings import resolve_settings
from space import answer as answers
from space import layout, limits, questions
from space.answer import METRICS, Answerer
from space.layout import VALUES, Asked, Handlers, build
from space.limits import BODY_BYTES, Allowance, Refused, RequestLimit, WorkLimit, visitor_of
from space.pages import SCORING, compared_page, headline, ranking_page, ranks_of
from space.questions import (
    CHOICES,
    DEFAULTS,
    PRESET,
    PageExample,
    Passages,
    Question,
    joined,
    read_examples,
    read_question,
)
from tests import ROOT

pytestmark = pytest.mark.usefixtures("tiny_space")

EXAMPLES = ROOT / "examples" / "space.json"
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script> ${alert(3)} {{value}}'
STORY = "It had been raining for three days."
TICKET = 7
VERDICT = Verdict("It was <dry>.", 0.95, "It was not <dry>.", "reference")


def visitor(address="203.0.113.1", session="any", host="mars.example"):
    client = SimpleNamespace(host=address, port=1)
    return SimpleNamespace(session_hash=session, client=client, headers={"host": host})


def typed(context, references, candidates, **others):
    """A ticket, and the values of the page."""
    texts = {"context": context, "question": "", "references": references, "candidates": candidates, "samples": ""}
    values = DEFAULTS | texts | others
    return [TICKET, *(values[name] for name in VALUES)]


def handler_index(page, handler):
    return next(index for index, event in page.fns.items() if event.fn == handler)


@pytest.fixture
def handlers():
    return Handlers(Answerer())


@cache
def answer(*candidates, references=("a b c",), context="c", **settings):
    return Answerer().answer(Question(context, references, candidates, **settings))


# What a visitor types


def test_each_line_is_a_text():
    question = read_question(" It rained.\nA lot. ", "One.\r\nTwo.\n", " a \n\nb\n\u200b")
    assert question == Question(
        " It rained.\nA lot. ", ("One.", "Two."), ("a", "b"), notices=("2 blank lines were left out.",)
    )
    for blank in ("\u200b", {"passages": ["\u200b"], "question": "How?"}):
        assert "context is empty" in read_question(blank, "r", "c").notices[0]
    assert read_question("a\0b", "\ud83d r", "x") == Question("a\ufffdb", ("\ufffd r",), ("x",))


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        ("a\n===\nb", ("a", "b")),
        ("a\n\n- b\n===\nc", ("a\n\n- b", "c")),
        ("a\nb\n ===\t", ("a\nb",)),
        ("===\na\nb", ("a\nb",)),
        ("a\r\nb\r\n===\r\nc\r\n", ("a\nb", "c")),
        ("a === b\n====", ("a === b", "====")),
    ],
)
def test_texts_of_several_lines_have_a_line_between(written, texts):
    assert read_question("c", "r", written).candidates == texts
    assert read_question("c", "r", joined(texts)).candidates == texts
    assert read_question("c", "r", list(texts)).candidates == texts


PASSAGES = {"passages": ["Boil it.", " \n", "Cool\nit."], "question": " How? "}


def test_passages_are_a_context(handlers):
    """In the API and on the page, where they have one line each; the task is "summary" unless another is set."""
    question = read_question(PASSAGES, "r", "x")
    assert question.context == Passages(("Boil it.", "Cool\nit."), "How?")
    assert question.task == "summary"
    assert read_question(PASSAGES, "r", "x", settings={"task": "text"}).task == "text"
    direct = MarsScorer(PRESET, variant="plus").score(["x"], ["r"], [PASSAGES])
    data = handlers.api(PASSAGES, ["r"], ["x"], request=visitor())
    assert data["ranking"][0]["mars"] == direct.score
    page = handlers.page(visitor(), *typed("Boil it.\n===\nCool\nit.", "r", "x", task="passages", question="How?"))
    assert data["signature"] == page.signature == str(direct.signature)
    assert page.asked.question == replace(question, notices=page.asked.question.notices)
    other = handlers.page(visitor(), *typed("Boil it.", "r", "x", question="How?"))
    assert other.asked.question.context == "Boil it."


def test_passages_of_an_example_are_written_as_they_are_read():
    question = read_question(PASSAGES, "r", "a\nb\n===\nc")
    values = layout._values(PageExample("title", "hint", question, ranks=(1, 2)))
    assert layout._read([*values, PRESET]) == question


@pytest.mark.parametrize(
    ("texts", "settings", "message"),
    [
        (({"passages": ["p"], "records": []}, "r", "x"), {}, "or passages with or without a question"),
        (({"passages": ["p"], "question": ["q"]}, "r", "x"), {}, "or passages with or without a question"),
        (({"passages": [1]}, "r", "x"), {}, "passages must be a list of texts"),
        (({"passages": ["p"] * 13}, "r", "x"), {}, "13 passages are too many"),
        (({"passages": ["p" * 2_500] * 2, "question": "q"}, "r", "x"), {}, "The context has 5,001 characters"),
        (({"passages": [], "question": "q"}, "", "x"), {}, "a context, references, or both"),
        (("", "", "x"), {}, "a context, references, or both"),
        (("c", "r", " \n "), {}, "at least one candidate"),
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
        (("c", "r", "x"), {"task": "story"}, f"A setting cannot be used: task must be one of {', '.join(TASKS)}"),
        (("c", "r", "x"), {"preset": "multilingual"}, "A setting cannot be used: preset must be one of"),
        (("c", "r", "x"), {"encoder": "../evil"}, "A setting cannot be used: there is no encoder here"),
    ],
)
def test_bad_questions_are_refused(texts, settings, message):
    with pytest.raises(Refused, match=message):
        read_question(*texts, settings=settings)


def test_defaults_are_those_of_the_package(handlers):
    """In the code, on the page and in the API; none is written down a second time."""
    package, question = dict(resolve_settings(PRESET, variant="plus").items()), Question("", ("r",), ())
    assert question.settings == {name: package[name] for name in question.settings}
    assert question.task == TASKS[0] == "text"
    examples = read_examples(EXAMPLES)
    page = build(handlers, examples)
    score = page.fns[handler_index(page, handlers.page)]
    controls = dict(zip(VALUES, score.inputs[1:], strict=True))
    assert {name: controls[name].value for name in VALUES if name in DEFAULTS}.items() <= DEFAULTS.items()
    assert [value for _, value in controls["task"].choices] == [*TASKS, "passages"]
    assert [value for _, value in controls["preset"].choices] == list(CHOICES)
    endpoints = page.get_api_info()["named_endpoints"]
    assert set(endpoints) == {"/score"}
    names = [parameter["parameter_name"] for parameter in endpoints["/score"]["parameters"]]
    assert names == ["context", "references", "candidates", "settings", "samples"]


def test_presets(monkeypatch):
    monkeypatch.setenv("MARS_PRESET", "paper")
    assert questions.space_presets() == ("paper",)
    monkeypatch.delenv("MARS_PRESET")
    installed = set()

    def located(name):
        return SimpleNamespace(is_here=lambda store: name in installed)

    monkeypatch.setattr(questions, "locate", located)
    for preset in ("mini", "medium"):
        monkeypatch.setitem(questions.PRESETS, preset, {"encoder": preset})
    assert questions.space_presets() == ("mini",)  # from the Hub, if it is not installed
    installed.add("medium")
    assert questions.space_presets() == ("mini", "medium")
    installed.clear()
    monkeypatch.setenv("SPACE_ID", "someone/mars")
    assert questions.space_presets() == ("mini", "medium")


# Examples


def test_examples_are_complete():
    """Each has a context of 30 to 120 words and a right ranking; the paper's MARS takes all with references."""
    examples = read_examples(EXAMPLES)
    for example in examples:
        context = example.question.context
        texts = context.texts if isinstance(context, Passages) else (context,)
        assert 30 <= len(" ".join(texts).split()) <= 120, example.title
        assert min(example.ranks) == 1 < max(example.ranks)
        if example.question.references:
            assert replace(example.question, paper=True).paper
    assert {example.question.task for example in examples} == {"text", "dialogue", "summary"}
    assert any(isinstance(example.question.context, Passages) for example in examples)
    assert [example.fails for example in examples].count(True) == 1
    assert [example.question.references for example in examples].count(()) == 1
    assert read_examples(ROOT / "missing.json") == []


@pytest.mark.parametrize(
    ("scores", "right"), [((3, 1, 2), True), ((3, 2, 1), True), ((1, 2, 3), False), ((2, 2, 1), False)]
)
def test_a_ranking_is_right_where_each_candidate_is_above_all_worse_ones(scores, right):
    example = PageExample("title", "hint", read_question("c", "r", ["x", "y", "z"]), ranks=(1, 2, 2))
    assert example.is_right(scores) == right


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
    middleware = RequestLimit(PlainTextResponse("fine"), Allowance(3, 60, "requests"))

    def status(host="203.0.113.1", method="POST", path="/gradio_api/queue/join", **sent):
        return TestClient(middleware, client=(host, 1)).request(method, path, **sent).status_code

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
    handlers = Handlers(Answerer(), WorkLimit(Allowance(0.001, 60, "seconds of computing")))
    handlers.api("c", ["a"], ["x"], request=visitor(session="one"))
    with pytest.raises(gr.Error, match="wait"):
        handlers.api("c", ["a"], ["x"], request=visitor(session="two"))
    assert "wait" in handlers.page(visitor(session="three"), *typed("c", "a", "x")).ranking
    handlers.api("c", ["a"], ["x"], request=visitor("203.0.113.2"))
    with pytest.raises(gr.Error, match="longer than 0 seconds, and was stopped"):
        Handlers(Answerer(), WorkLimit(call_seconds=0)).api("c", ["a"], ["not yet scored"], request=visitor())


@pytest.mark.parametrize(
    ("client", "host", "key"),
    [
        ("127.0.0.1", "127.0.0.1:7860", None),
        ("127.0.0.1", "localhost:7860", None),
        ("::1", "[::1]:7860", None),
        ("127.0.0.1", "mars.example", "127.0.0.1"),
        ("127.0.0.1", "[::1", "127.0.0.1"),
        ("127.0.0.1", None, "127.0.0.1"),
        ("203.0.113.1", "localhost", "203.0.113.1"),
        ("localhost.example", "localhost", "localhost.example"),
    ],
)
def test_only_a_visitor_on_this_machine_has_no_key(client, host, key, monkeypatch):
    assert visitor_of((client, 1), host) == key
    monkeypatch.setenv("SPACE_ID", "owner/space")
    assert visitor_of((client, 1), host) is not None
    assert visitor_of(None, host) == "unknown"


def test_on_this_machine_only_sizes_are_limited(monkeypatch):
    middleware = RequestLimit(PlainTextResponse("fine"), Allowance(1, 60, "requests"))

    def status(content=b"", **headers):
        client = TestClient(middleware, base_url="http://127.0.0.1:7860", client=("127.0.0.1", 1))
        return client.post("/gradio_api/queue/join", content=content, headers=headers).status_code

    assert [status() for _ in range(3)] == [200] * 3
    assert status(b"x" * (BODY_BYTES + 1)) == 413
    here = visitor("127.0.0.1", host="localhost:7860")
    limit = WorkLimit(Allowance(0.001, 60, "seconds of computing"), call_seconds=0)
    for number in range(2):
        page = Handlers(Answerer(), limit).page(here, *typed("c", "a", f"x {number}"))
        assert "mars-card" in page.ranking
    assert "5,001 characters" in Handlers(Answerer(), limit).page(here, *typed("c" * 5_001, "a", "x")).ranking
    monkeypatch.setenv("SPACE_ID", "owner/space")
    assert [status() for _ in range(2)] == [200, 429]


@contextmanager
def serving(handlers):
    """Serve a page on a real server; yield a client of its API."""
    page = build(handlers, [])
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False, show_error=False)
    try:
        with httpx.Client(base_url=f"{url}gradio_api/", timeout=30) as client:
            yield client
    finally:
        page.close()


def ask(client, context):
    return client.post("call/score", json={"data": [context, ["a"], ["x"], None, None]})


def test_the_queue_has_a_limit(handlers, monkeypatch):
    monkeypatch.setattr(layout, "WAITING_CALLS", 0)
    with serving(handlers) as client:
        assert ask(client, "c").status_code == 503


def test_the_log_holds_no_texts(monkeypatch, caplog, capfd):
    """Neither of exceptions here nor of those that gradio prints."""
    monkeypatch.setattr(traceback, "print_exception", traceback.print_exception)
    limits.hide_texts()

    class Broken(Answerer):
        def answer(self, question, progress):
            raise RuntimeError(question.context)

    handlers = Handlers(Broken())
    with serving(handlers) as client:
        event = ask(client, "a secret").json()["event_id"]
        assert "event: error" in client.get(f"call/score/{event}").text
        index = handler_index(build(handlers, []), handlers.page)
        radio = {"data": typed("a secret", "a", "x", task="a secret"), "fn_index": index, "session_hash": "s"}
        assert client.post("queue/join", json=radio).status_code == 200
        assert "process_completed" in client.get("queue/data", params={"session_hash": "s"}).text
    logged = caplog.text + "".join(capfd.readouterr())
    assert "RuntimeError" in logged
    assert "in preprocess" in logged
    assert "secret" not in logged


# Answers and pages


def test_the_papers_mars_is_a_rival():
    scored = answer("x y", "a b c", context=STORY, paper=True)
    direct = MarsScorer(PRESET, variant="paper").score(["x y", "a b c"], ["a b c"] * 2, [STORY] * 2)
    assert list(scored.scores) == list(METRICS) == ["MARS plus", "MARS paper", "BLEU", "ROUGE-L", "BERTScore"]
    assert scored.scores["MARS paper"] == pytest.approx(direct.scores)
    assert scored.signature.splitlines()[1] == str(direct.signature)
    data = json.loads(json.dumps(scored.to_dict()))
    assert [line["candidate"] for line in data["ranking"]] == ["a b c", "x y"]
    for line in data["ranking"]:
        assert set(line) == {
            *("candidate", "index", "mars", "paper", "bleu", "rouge_l", "bertscore"),
            *("terms", "contradicted", "supported", "unsupported"),
        }
        assert sum(term["weight"] * term["value"] for term in line["terms"]) == pytest.approx(line["mars"])
        assert line["paper"] == direct.scores[line["index"]]
    assert data["augmented"][0]["reference"] == "a b c"
    assert "<small>reference</small>a b c" in compared_page(scored)


def test_idf_of_the_papers_mars_is_counted_over_given_documents():
    """So that the references of one row do not all have the same weight."""
    question = Question(STORY, ("a b c",), ("x y",), paper=True)
    documents = ["a b c", "b c", "c"]
    scored = Answerer(documents).answer(question).paper
    direct = MarsScorer(PRESET, variant="paper", idf_corpus=documents).score(["x y"], ["a b c"], [STORY])
    assert scored.scores == direct.scores
    assert str(scored.signature) == str(direct.signature) != str(Answerer().answer(question).paper.signature)


def test_bertscore_is_that_of_mars_meta():
    scored = answer("a b x", "a b c", references=("y", "a b c"))
    metric = make_metric("bertscore", Models(preset=PRESET))
    rows = [Row(text, ("y", "a b c")) for text in ("a b x", "a b c")]
    assert scored.scores["BERTScore"] == pytest.approx(metric.score(rows, []), abs=1e-6)
    assert scored.scores["BERTScore"][0] < scored.scores["BERTScore"][1] == pytest.approx(1)
    assert "BERTScore" not in answer("a", references=()).scores
    assert "BERTScore</span>" in ranking_page(scored)


# Contradictions


def accused(scored, index=0, verdicts=(VERDICT,)):
    """The answer with verdicts on a candidate."""
    rows = list(scored.plus.row_scores)
    rows[index] = replace(rows[index], contradicted=verdicts, aspects=Aspects(supported=0.25))
    return replace(scored, plus=replace(scored.plus, row_scores=tuple(rows)))


def cards_of(page):
    """Of each card the closed part and what is shown when it is opened, best first."""
    return re.findall(r"<details.*?<summary>(.*?)</summary>(.*?)</details>", page)


def test_the_line_names_the_source_and_repeats_no_whole_candidate():
    for source in ("context", "reference"):
        told = (replace(VERDICT, source=source),)
        scored = accused(answer("It was <dry>.", task="summary", context=STORY), verdicts=told)
        [(closed, _)] = cards_of(ranking_page(scored))
        assert closed.count("It was &lt;dry&gt;.") == 1
        assert f">contradicts the {source} &quot;It was not" in closed
    twice = accused(answer("It was <dry>. All left."), verdicts=(VERDICT, replace(VERDICT, sentence="All left.")))
    [(closed, opened)] = cards_of(ranking_page(twice))
    assert "<mark>It was &lt;dry&gt;.</mark> <mark>All left.</mark>" in closed
    assert opened.count("<b>contradicted</b>") == closed.count('"mars-said"') == 2


def test_the_api_says_what_is_contradicted_and_supported():
    data = json.loads(json.dumps(accused(answer("a b c", "x")).to_dict()))
    verdict = {"sentence": "It was <dry>.", "probability": 0.95, "premise": "It was not <dry>."}
    verdict |= {"source": "reference", "words": [], "number": 1, "absent": []}
    found = [(line["contradicted"], line["supported"]) for line in data["ranking"]]
    assert found == [([verdict], 0.25), ([], None)]


@pytest.mark.parametrize(
    ("rivals", "ending"),
    [
        ({}, "MARS plus puts “a” first, by the context."),
        ({"MARS paper": (1, 0), "BLEU": (1, 1)}, "first; MARS paper and BLEU agree."),
        ({"MARS paper": (0, 1), "BLEU": (1, 0)}, "first; BLEU agrees; MARS paper puts “b” first."),
        ({"MARS paper": (0, 1), "BLEU": (0, 1)}, "first; MARS paper and BLEU put “b” first."),
        (dict.fromkeys(("MARS paper", "BLEU", "ROUGE-L"), (1, 0)), "first; MARS paper, BLEU and ROUGE-L agree."),
    ],
)
def test_ranks_and_headline(rivals, ending):
    assert ranks_of([0.5, 0.9, 0.5]) == [2, 1, 2]
    page = headline(replace(answer("a", "b"), scores={"MARS plus": (0.9, 0.1), **rivals}))
    assert re.sub("</?b>", "", page).endswith(ending)
    assert "Add more" in headline(answer("a"))


def test_the_terms_of_a_score_are_shown_with_their_meanings():
    scored = answer("a b x y")
    terms = Term("references", 0.5, 0.75), Term("context", -0.25, 0.25), Term("likelihood", 0.0, -0.3)
    row = replace(scored.plus.row_scores[0], terms=terms)
    page = ranking_page(replace(scored, plus=replace(scored.plus, row_scores=(row,))))
    [table] = re.findall("<table.*?</table>", page)
    lines = [re.sub("<[^>]+>", " ", line).split() for line in re.findall("<tr>(.*?)</tr>", table)]
    assert [line[:6] for line in lines] == [
        ["0.75", "&times;", "0.500", "=", "0.375", "references"],
        ["0.25", "&times;", "&minus;0.250", "=", "&minus;0.062", "context"],
    ]  # a term that adds nothing is not shown
    assert all(TERMS[line[5]].meaning in " ".join(line) for line in lines)


def test_the_best_card_is_open_and_each_rank_stands_once():
    scored = answer("a b c", "x y", "a x")
    page = ranking_page(scored)
    assert re.findall(r'<details class="mars-card"[^>]*?( open)?>', page) == [" open", "", ""]
    assert re.findall(r'mars-place">(\d)<', page) == ["1", "2", "3"]
    assert page.count('mars-rank"') == 3 * len(scored.scores.keys() - {"MARS plus"})


def test_every_term_has_its_meaning():
    answers = answer("a b x y", context=STORY), answer("a b", context="area=riverside")
    names = {term.name for scored in answers for row in scored.plus.row_scores for term in row.terms}
    assert {"references", "context", "likelihood"} <= names <= set(TERMS)


def test_hostile_texts_are_escaped_everywhere():
    scored = answer(HOSTILE, "a", references=(HOSTILE,), context=HOSTILE, paper=True)
    for page in (ranking_page(scored), compared_page(scored)):
        assert "<img" not in page
        assert "<script" not in page
        assert not re.search(r"=\"[^\"]*<", page)


def test_what_the_language_model_wrote_is_underlined():
    scored = answer("a", references=("He went home today.",), paper=True)
    [row] = scored.paper.row_scores
    [reference] = row.references
    infill = replace(reference.augmented.infills[0], template="He ____ home ____.", text="He ran home <now>.")
    augmented = replace(reference.augmented, infills=(infill,))
    row = replace(row, references=(replace(reference, augmented=augmented, similarities=(0.5, 0.7)),))
    page = compared_page(replace(scored, paper=replace(scored.paper, row_scores=(row,))))
    assert "masked</small>He <u>ran</u> home <u>&lt;now&gt;.</u></th>" in page
    assert "New words are underlined" in page


# What the buttons and the API do


def test_a_question_is_answered_and_the_papers_mars_added(handlers):
    page = handlers.page(visitor(), *typed("He was late.", "He left.", "a\n\nx"))
    assert "1 blank line" in page.notices
    assert page.ranking.count("<li>") == 2
    assert "MARS paper" not in page.ranking
    assert page.paper["visible"]
    page = handlers.paper(visitor(), page.asked)
    assert page.notices.count("<li>") == 1  # That the IDF is over few references is no news to a visitor.
    assert "MARS paper" in page.ranking
    assert "masked</small>" in page.compared
    assert not page.paper["visible"]


def test_a_notice_names_its_candidates(handlers):
    notices = handlers.page(visitor(), *typed(STORY, "r", f"a b c d e f\n{'x' * 1_400}")).notices
    assert f"“{'x' * 50} …”: a text is longer" in notices
    assert "a b c" not in notices
    for candidates, subject in (("a\nb", "All candidates"), ("a", "“a”")):
        notices = handlers.page(visitor(), *typed("a " * 2_400, "r", candidates)).notices
        assert f"{subject}: the language model did not see the end of the context" in notices


def test_settings_and_samples_count(handlers):
    settings = {"task": "dialogue", "reference_aggregation": "mean"}
    page = handlers.page(visitor(), *typed(STORY, "a b c", "a b x", samples="a b x", **settings))
    direct = MarsScorer(PRESET, variant="plus", **settings)
    assert page.signature == str(direct.score(["a b x"], ["a b c"], [STORY], samples=[["a b x"]]).signature)
    assert "likelihood" not in page.ranking  # A likely reply is a dull one.


def test_without_the_context_every_task_can_be_scored(handlers):
    for task in TASKS:
        values = typed(STORY, "a b c", "a b x", task=task, use_context=False)
        assert "mars-card" in handlers.page(visitor(), *values).ranking, task


def test_without_references_the_context_counts(handlers):
    page = handlers.page(visitor(), *typed(STORY, "", "One.\nTwo."))
    assert "no reference" in page.notices
    assert "BLEU" not in page.ranking
    assert not page.paper["visible"]
    assert page.signature == str(MarsScorer(PRESET, variant="plus").score(["One."], None, [STORY]).signature)


@pytest.mark.parametrize(
    ("score", "bar"), [(0.5, (33.3, 33.3)), (-0.25, (16.7, 16.7)), (-3, (0, 33.3)), (2, (33.3, 66.7))]
)
def test_without_references_a_bar_starts_at_zero(score, bar):
    scored = answer("One.", references=())
    page = ranking_page(replace(scored, scores={"MARS plus": [score]}))
    left, width = map(float, re.search(r'style="margin-left:([\d.]+)%;width:([\d.]+)%"', page).groups())
    assert (left, width) == bar
    assert ("mars-below" in page) == (score < 0)
    assert "by the context alone, mostly \N{MINUS SIGN}0.5 to 1" in page
    assert "margin-left:0.0%" in ranking_page(answer("One."))


@pytest.mark.parametrize(
    ("offered", "ending"),
    [(("mini", "medium"), "preset medium can."), (("mini",), "preset medium, which is not offered here, can.")],
)
def test_where_a_preset_cannot_check_a_summary_another_is_named(offered, ending, monkeypatch):
    monkeypatch.setattr(answers, "CHOICES", offered)
    scored = answer("One thing.", "Two.", references=())
    assert "contradicts its context" not in "".join(scored.notices)
    first, second = scored.plus.row_scores
    rows = replace(first, unchecked=Unchecked.NOT_BY_CONTEXT), replace(second, unchecked=Unchecked.FAR)
    notice = replace(scored, plus=replace(scored.plus, row_scores=rows)).notices[-1]
    assert (
        notice == f"“One thing”: preset {PRESET} cannot tell whether a summary contradicts its context; {ending}"
    )


def test_refusals_are_escaped_for_the_page_and_plain_for_programs(handlers):
    """And leave nothing of an earlier answer."""
    settings = {"reference_aggregation": HOSTILE}
    with pytest.raises(gr.Error, match=r"A setting cannot be used.*<img"):
        handlers.api("c", ["a"], ["x"], settings, request=visitor())
    page = handlers.page(visitor(), *typed("c", "a", "x", **settings))
    assert "A setting cannot be used" in page.ranking
    assert "&lt;img" in page.ranking
    assert "<img" not in page.ranking
    assert "mars-card" not in page.ranking
    assert (page.notices, page.compared, page.signature, page.paper["visible"]) == ("", "", "", False)


def test_what_needs_no_model_is_shown_at_once(handlers):
    """Refusals and prepared answers, which do not wait in the queue; all else is being scored."""
    page = build(handlers, [])
    assert not page.fns[handler_index(page, handlers.at_once)].queue
    assert page.fns[handler_index(page, handlers.page)].queue is not False
    assert "at least one candidate" in handlers.at_once(visitor(), *typed("", "", "")).ranking
    assert "a context, references, or both" in handlers.at_once(visitor(), *typed("", "", "x")).ranking
    assert handlers.at_once(visitor(), *typed("c", "a", "x")).ranking == SCORING
    used = Allowance(1, 60, "seconds of computing")
    used.charge("203.0.113.1")
    answerer = Answerer()
    answerer.prepare([read_question("c", "a", "x")])
    handlers = Handlers(answerer, WorkLimit(used))
    assert "mars-card" in handlers.at_once(visitor(), *typed("c", "a", "x")).ranking
    assert "wait" in handlers.at_once(visitor(), *typed("c", "a", "y")).ranking


def test_an_answer_has_the_ticket_of_its_inputs(handlers):
    page = handlers.page(visitor(), *typed(STORY, "a b", "x"))
    assert f'data-ticket="{TICKET}"' in page.ranking
    assert f'data-ticket="{TICKET}"' in handlers.paper(visitor(), page.asked).ranking
    assert 'data-ticket="0"' in ranking_page(answer("x"))


def test_where_the_papers_mars_is_refused_the_ranking_stays(handlers):
    with pytest.warns(UserWarning, match="all references together"):
        page = handlers.paper(visitor(), Asked(Question("c", ("r" * 500,), ("x",))))
    assert page.ranking == gr.skip()
    assert page.paper["interactive"]


@pytest.mark.parametrize("fault", [RuntimeError("/root/secret"), ModelUnavailableError("/root/secret")])
def test_unexpected_errors_show_no_details(fault):
    class Broken(Answerer):
        def answer(self, *_):
            raise fault

    with pytest.raises(gr.Error, match="again") as error:
        Handlers(Broken()).api("c", ["a"], ["x"], request=visitor())
    assert "secret" not in error.value.message
    page = Handlers(Broken()).page(visitor(), *typed("c", "a", "x"))
    assert "again" in page.ranking
    assert "secret" not in page.ranking


def test_examples_are_answered_before_they_are_asked_for():
    """Also by the paper's MARS, and without a visitor's time."""
    answerer, question = Answerer(), Question(STORY, ("She took a bus.",), ("A bus.",))
    allowance = Allowance(1, 60, "seconds of computing")
    allowance.charge("203.0.113.1")
    handlers = Handlers(answerer, WorkLimit(allowance))
    assert "Press" in handlers.arrive(question).ranking
    answerer.prepare([replace(question, paper=True), read_question(STORY, "", "A bus.")])
    assert "MARS paper" in handlers.arrive(question).ranking
    assert "MARS paper" in handlers.page(visitor(), *typed(STORY, "She took a bus.", "A bus.")).ranking
    assert "mars-card" in handlers.page(visitor(), *typed(STORY, "", "A bus.")).ranking
    for other in ({"task": "data"}, {"samples": "A sample."}):
        assert "wait" in handlers.page(visitor(), *typed(STORY, "She took a bus.", "A bus.", **other)).ranking


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


def test_without_gradio_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    monkeypatch.delitem(sys.modules, "space.layout")
    with pytest.raises(ImportError, match=r"^gradio is not installed; run: pip install 'mars-score\[space\]'$"):
        runpy.run_path(str(ROOT / "app.py"))
