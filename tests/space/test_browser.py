"""The real Space with preset "mini": in headless Chromium, through gradio_client, and under load.

Limits are by address; 127.0.0.1 counts as a proxy, so that each visitor here names one in X-Forwarded-For.
"""

import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from docs.pictures import make
from space.questions import Passages, read_examples
from tests import ROOT
from tests.docs.test_pages import assert_printed

pytestmark = pytest.mark.slow

EXAMPLES = read_examples(ROOT / "examples" / "space.json")
HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=2</script> ${window.hurt=3} {{constructor}}'
QUESTION = {
    "context": "The museum closes at six.",
    "references": ["We have to leave the museum before six."],
    "candidates": ["We have to go out before it closes.", "The cat slept on the sofa."],
}
PAPER = ".mars-name:text-is('MARS paper')"
numbers = itertools.count(1)


def new_visitor():
    number = next(numbers)
    return {"X-Forwarded-For": f"203.0.{number // 250}.{number % 250}"}


@pytest.fixture(scope="module")
def space(tmp_path_factory, converted):
    """Address, process and log of the app, ready, with a store of its own that has the language model."""
    folder = tmp_path_factory.mktemp("space")
    (folder / "store").mkdir(mode=0o700)
    (folder / "store" / "models").symlink_to(converted)
    log = folder / "log.txt"
    environment = {"MARS_PRESET": "mini", "MARS_STORE": str(folder / "store")}
    with log.open("wb") as out, make.running_app(out, **environment) as (address, process):
        yield address, process, log


@pytest.fixture(scope="module")
def browser():
    if make.CHROMIUM is None:
        pytest.skip("needs Debian's chromium")
    with make.running_chromium() as chromium:
        yield chromium


@pytest.fixture
def context(space, browser):
    """What a new visitor's pages share; they load nothing from elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, extra_http_headers=new_visitor())
    urls = []
    context.on("request", lambda request: urls.append(request.url))
    yield context
    context.close()
    assert [url for url in urls if not url.startswith((space[0], "data:", "blob:"))] == []


@pytest.fixture
def page(space, context):
    return make.visit(context, space[0])


def test_the_first_visitor_sees_a_result_without_a_click(space, context):
    """On a server that has just started: its example was answered before it opened."""
    page = context.new_page()
    page.goto(space[0], wait_until="commit")
    page.wait_for_selector(".mars-main")


def client(address):
    from gradio_client import Client

    return Client(address, verbose=False, headers=new_visitor())


def fill(page, context, references, candidates, task="text"):
    page.check(f"#mars-task input[value={task}]")
    for name, text in (("context", context), ("references", references), ("candidates", candidates)):
        page.fill(f"#mars-{name} textarea", text)


def score(page, context, references, candidates):
    """Type texts, press the button and wait for what is new."""
    fill(page, context, references, candidates)
    page.evaluate("document.querySelector('#mars-ranking .mars-headline')?.setAttribute('data-old', '1')")
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-headline:not([data-old])")


def chosen(page):
    """The titles of the examples that are marked."""
    return page.locator("#mars-examples button[aria-pressed=true]").all_inner_texts()


def cards(page):
    return page.locator(".mars-card .mars-text").all_inner_texts()


def choose(page, example):
    """Click an example and wait for its ranking."""
    page.get_by_role("button", name=example.title).click()
    texts = ", ".join(map(json.dumps, example.question.candidates))
    page.wait_for_function(f"[{texts}].includes(document.querySelector('.mars-text')?.innerText)")


def test_an_example_waits_on_arrival_and_others_are_a_click_away(page):
    first, second, *_ = EXAMPLES
    assert sorted(cards(page)) == sorted(first.question.candidates)
    assert page.locator(PAPER).count() == len(first.question.candidates)
    page.wait_for_selector(f"#mars-example-hint:has-text({json.dumps(first.hint)})")
    choose(page, second)
    assert sorted(cards(page)) == sorted(second.question.candidates)
    page.wait_for_selector(f"#mars-example-hint:has-text({json.dumps(second.hint)})")


def test_a_hint_goes_with_its_example(page):
    page.wait_for_selector("#mars-example-hint")
    page.fill("#mars-context textarea", "Something else.")
    page.wait_for_selector("#mars-example-hint", state="hidden")
    choose(page, EXAMPLES[0])
    page.wait_for_selector("#mars-example-hint")
    page.check("#mars-task input[value=data]")
    page.wait_for_selector("#mars-example-hint", state="hidden")


def test_the_example_on_the_page_is_marked(page):
    page.wait_for_selector("#mars-examples button[aria-pressed=true]")
    assert chosen(page) == [EXAMPLES[0].title]
    choose(page, EXAMPLES[1])
    assert chosen(page) == [EXAMPLES[1].title]
    buttons = [page.get_by_role("button", name=example.title) for example in EXAMPLES[:2]]
    looks = [button.evaluate("one => getComputedStyle(one).boxShadow") for button in buttons]
    assert looks[0] != looks[1]
    page.fill("#mars-references textarea", "Something else.")
    page.wait_for_selector("#mars-examples:not(:has([aria-pressed=true]))")
    page.fill("#mars-references textarea", EXAMPLES[1].question.references[0])
    page.wait_for_selector("#mars-examples button[aria-pressed=true]")
    assert chosen(page) == [EXAMPLES[1].title]


def test_results_of_earlier_inputs_are_marked_until_they_are_renewed_or_right_again(page):
    context = page.input_value("#mars-context textarea")
    for selector, text, before in (("context", "Something else.", context), ("samples", "A sample.", "")):
        if selector == "samples":
            page.click("#mars-settings .label-wrap")
        page.fill(f"#mars-{selector} textarea", text)
        page.wait_for_selector("#mars-outdated:has-text('Press “Score”')")
        assert "grayscale" in page.evaluate("getComputedStyle(document.querySelector('#mars-ranking')).filter")
        assert not page.is_visible("#mars-paper")
        page.fill(f"#mars-{selector} textarea", before)
        page.wait_for_selector("#mars-outdated", state="hidden")
    page.fill("#mars-context textarea", "Something else.")
    page.wait_for_selector("#mars-outdated")
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-headline:not([data-ticket='0'])")
    assert not page.is_visible("#mars-outdated")
    page.check("#mars-task input[value=data]")
    page.wait_for_selector("#mars-outdated")
    choose(page, EXAMPLES[1])
    assert not page.is_visible("#mars-outdated")
    assert page.evaluate("getComputedStyle(document.querySelector('#mars-ranking')).filter") == "none"


def test_an_answer_that_comes_late_is_marked_as_of_earlier_inputs(page):
    waiting = []
    page.route("**/queue/join*", lambda route: waiting.append(route))
    fill(page, "Jane's car broke down.", "She went by bus.", "She took the bus.")
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-busy")
    while not waiting:
        page.wait_for_timeout(50)
    page.fill("#mars-candidates textarea", "She drove.")
    waiting[0].continue_()
    page.wait_for_selector("#mars-ranking .mars-headline")
    assert cards(page) == ["She took the bus."]
    page.wait_for_selector("#mars-outdated")


def test_a_contradiction_is_marked(page):
    [example] = [one for one in EXAMPLES if one.title == "A contradiction"]
    choose(page, example)
    assert page.locator(".mars-card .mars-mark").all_inner_texts() == ["Contradicted"]
    card = page.locator(".mars-card", has=page.locator(".mars-mark"))
    assert card.get_attribute("open") is None
    line = card.locator(".mars-accusation")
    assert example.question.references[0] in line.inner_text()
    assert line.bounding_box()["height"] < 70
    assert "Contradicted" in page.inner_text(".mars-headline")  # BLEU puts it first.
    card.locator("summary").click()
    verdict = card.locator(".mars-verdict").inner_text()
    assert example.question.candidates[0] in verdict
    assert example.question.references[0] in verdict


def test_what_opens_has_one_kind_of_marker(page):
    """Cards, the table of the paper's MARS, and gradio's accordion."""
    parts = [".mars-card:not([open]) > summary", ".mars-compared > summary", "#mars-settings .label-wrap"]
    look = """part => ['content', 'color', 'fontSize'].map(
        name => getComputedStyle(document.querySelector(part), '::after')[name])"""
    assert len({tuple(page.evaluate(look, part)) for part in parts}) == 1
    assert not page.is_visible("#mars-settings .label-wrap > .icon")
    for part in parts:
        closed = page.locator(part).first.element_handle()
        closed.click()
        assert closed.evaluate("part => getComputedStyle(part, '::after').content") == '"▾"'


def test_one_card_is_open_at_a_time(page):
    opened = page.locator(".mars-card[open] .mars-place")
    assert opened.all_inner_texts() == ["1"]
    page.locator(".mars-card summary").nth(1).click()
    assert opened.all_inner_texts() == ["2"]
    assert page.locator(".mars-why:visible").count() == 1


def test_the_inputs_stay_in_sight(page):
    page.set_viewport_size({"width": 1280, "height": 500})
    page.locator(".mars-card").last.scroll_into_view_if_needed()
    assert page.evaluate("scrollY") > 300
    inputs = page.locator("#mars-inputs").bounding_box()
    assert 0 <= inputs["y"] < 50
    assert inputs["y"] + inputs["height"] <= 500


def test_a_refusal_takes_the_place_of_an_earlier_answer(page):
    """An empty form is told what is missing, before it waits in the queue; nothing of an earlier answer stays.

    Gradio shows no error.
    """
    page.route("**/queue/join*", lambda route: None)
    fill(page, "", "", "")
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-problem:has-text('candidate')")
    fill(page, "", "", "x")
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-problem:has-text('a context, references, or both')")
    assert page.locator(".mars-headline, .toast-body, .error:visible").count() == 0
    assert not page.is_visible("#mars-signature")


def test_nothing_of_an_earlier_answer_is_shown_while_texts_are_scored(page):
    page.route("**/queue/join*", lambda route: None)  # the answer never comes
    page.fill("#mars-context textarea", "Something else.")
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-busy")
    assert page.locator(".mars-headline").count() == 0


def test_where_the_queue_refuses_the_page_says_so(page):
    full = json.dumps({"detail": "The queue is full."})
    page.route(
        "**/queue/join*", lambda route: route.fulfill(status=503, body=full, content_type="application/json")
    )
    page.fill("#mars-context textarea", "Something else.")
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-problem:has-text('again')")


def test_examples_set_the_task_and_it_counts(page):
    """In a dialogue a likely reply earns nothing."""
    for example in EXAMPLES:
        choose(page, example)
        question = example.question
        task = "passages" if isinstance(question.context, Passages) else question.task
        assert page.locator("#mars-task input:checked").input_value() == task
        assert page.is_visible("#mars-question") == (task == "passages")
        terms = page.inner_text(".mars-card[open] .mars-terms")
        assert ("likelihood" in terms) == (task != "dialogue"), example.title
    assert "task:dialogue" not in page.input_value("#mars-signature textarea")


def test_the_picture_shows_this_page(page):
    recorded = json.loads((ROOT / "docs" / "pictures" / "space-desktop.json").read_text(encoding="utf-8"))
    assert_printed("\n".join(make.visible_text(page)), "\n".join(recorded), tolerance=0.02)


def test_typed_texts_are_ranked_their_words_coloured_and_the_papers_mars_added(page):
    candidates = "The cat slept on the sofa.\nShe took the bus.\n\nShe drove.\n"
    score(page, "Jane's car broke down on Monday.", "She went by bus.", candidates)
    assert cards(page)[0] == "She took the bus."
    scores = [
        float(text.replace("\N{MINUS SIGN}", "-"))
        for text in page.locator(".mars-main .mars-number").all_inner_texts()
    ]
    assert scores == sorted(scores, reverse=True)
    assert "1 blank line" in page.inner_text("#mars-notices")
    assert page.locator(PAPER).count() == 0
    page.click("#mars-paper")
    page.wait_for_selector(PAPER)
    assert page.locator(PAPER).count() == 3
    page.click("#mars-compared summary")
    assert page.locator("#mars-compared u").count() > 0
    assert not page.is_visible("#mars-paper")
    words = page.locator(".mars-card[open] .mars-explained > .mars-match .mars-word")
    assert words.all_inner_texts() == ["She", "went", "by", "bus", "."]
    shades = words.evaluate_all("all => all.map(word => parseFloat(word.style.cssText.slice(8)))")
    assert max(shades) == shades[0] > shades[2]
    bus = words.nth(3)
    tooltip = "word => getComputedStyle(word, '::after').content"
    assert bus.evaluate(tooltip) == "none"
    bus.focus()
    assert re.fullmatch(r'"bus 0\.\d\d"', bus.evaluate(tooltip))


def test_huge_and_hostile_input(page):
    fill(page, "c" * 100_000, "r", "x")
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-problem:has-text('100,000 characters')")
    score(page, HOSTILE, HOSTILE, f"{HOSTILE}\n=1+1\n\u202eabc\ud800")
    assert HOSTILE in cards(page)
    assert page.evaluate("window.hurt") is None
    assert page.locator("#mars-ranking img, #mars-compared img").count() == 0


def test_it_fits_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector(PAPER)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    first = page.locator(".mars-main").first.bounding_box()
    assert first["y"] + first["height"] < 844  # the first result is on the first screen
    assert first["y"] < page.locator("#mars-paper, #mars-compared").first.bounding_box()["y"]
    assert page.evaluate("getComputedStyle(document.querySelector('#mars-inputs')).position") == "static"
    button = page.locator("#mars-score").bounding_box()
    result = page.locator(".mars-headline").bounding_box()
    assert 0 < result["y"] - button["y"] - button["height"] < 40


def test_on_a_phone_all_candidates_are_shown(page):
    page.set_viewport_size({"width": 390, "height": 844})
    for example in EXAMPLES:
        choose(page, example)
        assert sorted(cards(page)) == sorted(example.question.candidates)
        assert all(text.is_visible() for text in page.locator(".mars-card .mars-text").all())
        box = page.locator("#mars-candidates textarea")
        shown = box.evaluate("box => [box.clientHeight / box.scrollHeight, getComputedStyle(box).overflowY]")
        assert shown[0] == 1 or shown[1] in ("auto", "scroll"), example.title
    labels = page.locator("#mars-task label").all()
    assert all(label.bounding_box()["x"] + label.bounding_box()["width"] < 390 for label in labels)


def test_on_a_phone_lines_are_whole_and_results_come_into_sight(page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector(PAPER)
    lines = """box => {
        const style = getComputedStyle(box);
        return [box.clientHeight / parseFloat(style.lineHeight), style.paddingTop, style.paddingBottom];
    }"""
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        fill(
            page, "A long line, which goes on and on, and on again. " * 40, "She went by bus.", "She drove.\n" * 20
        )
        for name in ("context", "references", "candidates"):
            count, *padding = page.locator(f"#mars-{name} textarea").evaluate(lines)
            assert count == pytest.approx(round(count), abs=0.1), name
            assert count >= 1
            assert padding == ["0px", "0px"]  # or a part of the next line would show in it
    page.set_viewport_size({"width": 390, "height": 844})
    score(page, "Jane's car broke down on Monday.", "She went by bus.", "She took the bus.\nShe drove.")
    page.wait_for_function("Math.abs(document.querySelector('#mars-outputs').getBoundingClientRect().top) < 30")
    choose(page, EXAMPLES[1])
    for opened in page.locator(".mars-card:not([open]) summary").element_handles():
        opened.click()
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_api(space):
    api = client(space[0])
    answer = api.predict(**QUESTION, api_name="/score")
    assert [line["index"] for line in answer["ranking"]] == [0, 1]
    answer = api.predict(**QUESTION, settings={"paper": True, "use_context": False}, api_name="/score")
    terms = {term["name"] for term in answer["ranking"][0]["terms"]}
    assert terms == {"references", "likelihood", "repetition"}  # It is far from the reference.
    assert answer["ranking"][0]["paper"] > answer["ranking"][1]["paper"]
    assert answer["ranking"][0]["bertscore"] > answer["ranking"][1]["bertscore"]
    assert answer["augmented"][0]["augmentations"]


@pytest.mark.parametrize("change", [{"candidates": [[["x"]]]}, {"settings": ["paper"]}])
def test_the_api_refuses_without_giving_anything_away(space, change):
    with pytest.raises(Exception) as error:  # noqa: PT011 (gradio_client's own)
        client(space[0]).predict(**{**QUESTION, **change}, api_name="/score")
    message = str(error.value)
    assert "Traceback" not in message
    assert str(ROOT) not in message
    assert "site-packages" not in message


def test_an_address_sends_few_requests_and_neither_sends_nor_reads_files(space):
    """With a new session for each request; others are answered afterwards."""
    flood = httpx.Client(base_url=f"{space[0]}/gradio_api/", headers=new_visitor(), timeout=60)
    assert flood.post("queue/join", content=b"x" * 2_000_000).status_code == 413
    assert flood.post("upload", files={"files": ("x.csv", b"x")}).status_code == 403
    for path in (ROOT / "pyproject.toml", "/etc/passwd"):
        assert flood.get(f"file={path}").status_code in (403, 404)
    data = [*QUESTION.values(), None, None]
    joined = [flood.post("call/score", json={"data": data, "session_hash": f"s{number}"}) for number in range(100)]
    statuses = [answer.status_code for answer in joined]
    assert statuses.count(429) >= 40
    assert set(statuses) == {200, 429}
    assert client(space[0]).predict(**QUESTION, api_name="/score")["ranking"]


def test_under_load_all_are_answered_and_memory_stays_where_it_is(space):
    """Fifty requests at once from 25 visitors, five times."""
    address, process, log = space
    memory = psutil.Process(process.pid).memory_info
    with ThreadPoolExecutor(10) as pool:
        clients = list(pool.map(client, [address] * 25))

    def burst(turn):
        jobs = []
        for number in range(50):
            context, reference = f"For {turn} days it had rained.", f"Person {number % 5} took a bus."
            texts = context, [reference], [f"Try {turn} {number}."]
            jobs.append(clients[number % 25].submit(*texts, api_name="/score"))
        for number, job in enumerate(jobs):
            [scored] = job.result(timeout=300)["ranking"]
            assert scored["candidate"] == f"Try {turn} {number}."

    burst(0)
    before = memory().rss
    for turn in range(1, 5):
        burst(turn)
    assert memory().rss < before + 150 * 2**20
    assert "Traceback" not in log.read_text()
