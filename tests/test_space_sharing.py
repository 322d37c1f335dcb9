"""What the Space shows to be shared: links, images, candidates changed to fool it, with tiny models."""

import dataclasses
import io
import re
from types import SimpleNamespace
from urllib.parse import urlencode

import gradio as gr
import pytest
from PIL import Image

from mars_score.meta.attacks import CHANGES
from mars_score.space import card, limits
from mars_score.space.answer import Metric
from mars_score.space.choices import HEADS, Choices
from mars_score.space.engine import Engine
from mars_score.space.examples import Example
from mars_score.space.fooling import NAMES, fooled, fooling_page, versions_of, with_versions
from mars_score.space.handlers import Handlers
from mars_score.space.inputs import Question
from mars_score.space.limits import Refused
from mars_score.space.links import Inquiry, read_query, to_query
from mars_score.space.pages import SCORING, ranking_page

pytestmark = pytest.mark.usefixtures("tiny_space")

VISITOR = SimpleNamespace(session_hash="one", client=None)
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
QUESTION = Question(
    "It rained & 5 < 6?\nIn Köln = “so”. 雨 +1%20", ("She took a bus.", "A tram."), ("a b #c d", "+ 2 x")
)


def answer(question, **choices):
    return Engine().answer(question, Choices(**choices))


# Links


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"max_mask_ratio": 0.4, "planner": "self", "q": 0.5, "augmentation_aggregation": "weighted"},
        {"use_context": False, "reference_aggregation": "mean"},
        {"samples": 3, "task": "Say {context} & more = 1\nin a line"},
        {"learned": HEADS[0]},
    ],
)
def test_a_link_restores_texts_and_settings(choices):
    inquiry = Inquiry(QUESTION, Choices(**choices))
    query = to_query(inquiry)
    assert re.fullmatch(r"\?[\w.~%+&=-]+", query)
    assert read_query(query) == inquiry
    assert len(re.findall("[?&]", query)) == 5 + len(choices)


def test_a_link_without_references():
    inquiry = Inquiry(dataclasses.replace(QUESTION, references=()), Choices())
    linked = read_query(to_query(inquiry))
    assert linked.question.references == ()
    assert "no reference" in linked.question.notices[0]


def test_nothing_is_cut_to_fit_into_a_link():
    def link(length):
        return to_query(Inquiry(Question("é" * length, ("r",), ("c",)), Choices()))

    fits = (limits.LINK_CHARACTERS - len(link(0))) // len("%C3%A9")
    assert read_query(link(fits)).question.context == "é" * fits
    with pytest.raises(Refused, match="too long for a link: it would have 7,5"):
        link(fits + 1)
    handlers = Handlers(Engine())
    page = handlers.page(VISITOR, "é" * 1_400, "r", "c", *dataclasses.astuple(Choices()))
    assert page.link == ""
    assert "too long for a link" in page.notices
    assert "mars-card" in page.ranking


@pytest.mark.parametrize("query", ["", "?", "?__theme=dark", "?utm_source=x&fbclid="])
def test_addresses_that_ask_for_nothing(query):
    assert read_query(query) is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?" + "candidate=a&" * 13, "13 times 'candidate'"),
        ("?context=a&context=b", "2 times 'context'"),
        ("?reference=a&samples=1&samples=2", "2 times 'samples'"),
        ("?candidate=a%0Ab&reference=r", "several lines"),
        ("?reference=a%0Db&candidate=r", "several lines"),
        ("?samples=3", "reference"),
        ("?reference=r", "candidate"),
        ("?reference=r&candidate=c&samples=3.5", "setting of the link"),
        ("?reference=r&candidate=c&samples=17", "at most 16"),
        ("?reference=r&candidate=c&samples=" + "9" * 5_000, "setting"),
        ("?reference=r&candidate=c&use_context=maybe", "neither true nor false"),
        ("?reference=r&candidate=c&q=nan&max_mask_ratio=1&augmentation_aggregation=weighted", "setting"),
        ("?reference=r&candidate=c&learned=..%2Fevil", "no learned head"),
        ("?reference=r&candidate=c&planner=evil", "setting"),
        ("?reference=r&candidate=%ff", "damaged"),
        ("?reference=r&candidate=c" + "&x=1" * 100, "too many"),
        ("?context=" + "c" * limits.LINK_CHARACTERS, "at most 7,500"),
        (f"?candidate=c&reference={'r' * 601}", "at most 600"),
    ],
)
def test_bad_links_are_refused(query, message):
    with pytest.raises(Refused, match=message):
        read_query(query)


def test_what_a_link_means_nothing_with_is_said():
    linked = read_query("?candidate=c&reference=r&context=x&sample=3")
    assert linked.question.notices == ("The link has parameters that mean nothing here: sample.",)


def test_arrival_by_a_link():
    handlers, example = Handlers(Engine()), Example("A bus", "Look.", QUESTION)
    inquiry = Inquiry(Question("It rained.", ("She took a bus.",), ("A bus.", HOSTILE)), Choices(samples=2))
    linked, lesson, shown, page = handlers.arrive(to_query(inquiry), example)
    assert (linked, lesson, shown, page.ranking) == (inquiry, "", inquiry, SCORING)
    followed = handlers.follow(VISITOR, linked)
    assert followed.ranking.count("mars-card") == 2
    assert followed.link == to_query(inquiry)
    assert "<img" not in followed.ranking
    linked, lesson, shown, page = handlers.arrive(f"?{urlencode({'candidate': HOSTILE, 'q': HOSTILE})}", example)
    assert (linked, lesson, shown.question) == (None, "Look.", QUESTION)
    assert "Here is an example instead" in page.notices
    assert "<img" not in page.notices


# What the language model changed


def test_scores_without_what_the_language_model_wrote():
    question = Question("It had been raining for three days.", ("She took a bus.",), ("a b", "x y", "She ran."))
    one = answer(question)
    plain = Engine().ask(question, Choices(samples=0))
    assert one.alone.scores == pytest.approx(tuple(plain.scores))
    assert ranking_page(one).count("Without what the language model wrote:") == 3
    assert answer(question, samples=0).alone is None
    assert answer(question, samples=0, max_mask_ratio=0.4).alone.scores == pytest.approx(tuple(plain.scores))


@pytest.mark.parametrize(("alone", "said"), [((0.1, 0.3, 0.2), True), ((0.9, 0.5, 0.1), False)])
def test_a_changed_order_is_said(alone, said):
    one = answer(Question("c", ("a b c",), ("a b c", "a b x", "y")))
    assert one.order == [0, 1, 2]
    page = ranking_page(dataclasses.replace(one, alone=Metric("MARS alone", alone)))
    assert ("<b>2</b> would be above <b>1</b>" in page) == said
    assert ("mars-moved" in page) == said


# Fooling


def test_every_change_has_a_name():
    assert set(NAMES) == set(CHANGES)


def test_a_candidate_beside_its_changed_versions():
    question = Question("A dog slept.", ("It is six now.",), ("x", "It is six now, <b>and</b> late."))
    versions = versions_of(question, 1)
    changed = with_versions(question, 1, versions)
    assert changed.candidates == (question.candidates[1], *versions.values())
    one = answer(changed)
    page = fooling_page(one, versions)
    shown = [float(text) for text in re.findall(r'data-label="MARS"[^>]*>(?:<b>)?([\d.]+)', page)]
    assert shown == [pytest.approx(score, abs=6e-4) for score in one.metrics[0].scores]
    for metric in (metric for metric in one.metrics if metric.name != "Recall"):
        caught = [score >= metric.scores[0] for score in metric.scores[1:]]
        assert fooled(metric) == caught
        assert f"{metric.name} {sum(caught)}</b>" in page
        assert len(re.findall(f'data-label="{metric.name}" class="mars-fooled"', page)) == sum(caught)
    assert "<b>and" not in page
    assert "<u>not</u>" in page


def test_what_cannot_be_changed_is_said():
    question = Question("", ("Six?",), ("Really?",))
    versions = versions_of(question, 0)
    page = fooling_page(answer(with_versions(question, 0, versions)), versions)
    for label, why in NAMES.values():
        assert f"{label} ({why})" in page


@pytest.mark.parametrize("call", ["fool", "card", "follow"])
def test_without_scores_there_is_nothing_to_share(call):
    arguments = (None, 0) if call == "fool" else (None,)
    with pytest.raises(gr.Error, match="score some candidates first"):
        getattr(Handlers(Engine()), call)(VISITOR, *arguments)


def test_fooling_from_the_page():
    handlers = Handlers(Engine())
    page = handlers.fool(VISITOR, Inquiry(QUESTION, Choices()), 1)
    assert "your candidate" in page
    assert "+ 2 x" in page


# The image


def test_the_card_is_an_image_of_all_candidates():
    few, many = (
        answer(Question("c " * 900, ("a b c",), ("a b", "w" * 1_500)[:n] * (n > 1) or ("a b",))) for n in (1, 2)
    )
    sizes = [Image.open(io.BytesIO(card.draw_card(one))).size for one in (few, many)]
    assert [width for width, _ in sizes] == [card.WIDTH] * 2
    assert sizes[0][1] < sizes[1][1]


def test_twelve_long_candidates_fit_on_a_card():
    texts = tuple(f"{number} {'long words ' * 30}" for number in range(limits.CANDIDATES))
    one = answer(Question("c " * 900, ("a b c " * 90,) * 4, texts))
    image = Image.open(io.BytesIO(card.draw_card(one)))
    assert image.size[1] < card._TALLEST
    assert image.getpixel((5, image.size[1] - 5)) == image.getpixel((5, 5))


def test_lines_are_broken_and_cut_with_a_sign():
    font = card._font(24, False)
    lines = card._wrapped("one two three\nfour " + "x" * 200, font, 120, 9)
    assert lines[:2] == ["one two", "three"]
    assert lines[2].startswith("four")
    assert all(font.getlength(line) <= 120 for line in lines)
    assert card._wrapped("one two three", font, 120, 1)[0].endswith(" …")
    assert card._wrapped("one", font, 120, 1) == ["one"]


def test_letters_that_the_card_cannot_draw_are_named(monkeypatch):
    said = []
    monkeypatch.setattr(gr, "Warning", said.append)
    handlers = Handlers(Engine())
    update = handlers.card(VISITOR, Inquiry(Question("Привет, Köln!", ("r",), ("雨 and 雪",)), Choices()))
    assert update["visible"]
    with Image.open(update["value"]) as image:
        assert image.format == "PNG"
    assert "雨雪" in said[0]
    handlers.card(VISITOR, Inquiry(Question("Привет, Köln!", ("r",), ("c",)), Choices()))
    assert len(said) == 1
