"""The real Space with preset "mini": in headless Chromium, through gradio_client, and under load.

Limits are by address; 127.0.0.1 counts as a proxy, so that each visitor here names one in X-Forwarded-For.
"""

import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from test_readme import assert_printed

from docs.pictures import make
from space.questions import read_examples

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
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
    """An empty form is told what is missing; nothing of an earlier answer stays, and gradio shows no error."""
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
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-busy")
    assert page.locator(".mars-headline").count() == 0


def test_where_the_queue_refuses_the_page_says_so(page):
    full = json.dumps({"detail": "The queue is full."})
    page.route(
        "**/queue/join*", lambda route: route.fulfill(status=503, body=full, content_type="application/json")
    )
    page.click("#mars-score")
    page.wait_for_selector("#mars-ranking .mars-problem:has-text('again')")


def test_examples_set_the_task_and_it_counts(page):
    """In a dialogue a likely reply earns nothing."""
    for example in EXAMPLES:
        choose(page, example)
        task = example.question.task
        assert page.locator("#mars-task input:checked").input_value() == task
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


def test_the_api(space):
    api = client(space[0])
    answer = api.predict(**QUESTION, api_name="/score")
    assert [line["index"] for line in answer["ranking"]] == [0, 1]
    answer = api.predict(**QUESTION, settings={"paper": True, "use_context": False}, api_name="/score")
    terms = {term["name"] for term in answer["ranking"][0]["terms"]}
    assert terms == {"references", "likelihood", "repetition", "contradiction"}
    assert answer["ranking"][0]["paper"] > answer["ranking"][1]["paper"]
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
