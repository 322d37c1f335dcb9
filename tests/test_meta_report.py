"""The report is read back with other parsers: html.parser, lxml and markdown-it."""

import base64
import functools
import hashlib
import io
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from lxml import html as lxml_html
from markdown_it import MarkdownIt
from PIL import Image

from mars_score.report import write_report
from mars_score.report.charts import finite_points, regression_line
from mars_score.report.contents import Bars, Disagreement, Report, Scatter, Section, Table, showable
from mars_score.report.markdown import to_markdown
from mars_score.report.page import to_html

HOSTILE = (
    "<script>alert(1)</script>",
    "</style></script><img src=http://evil.test/x.png onerror=alert(1)>",
    "a | b\nc",
    "\\| `code` **bold** _it_ ~~gone~~ $x^2$",
    "![picture](http://evil.test/y.png) [link](javascript:alert(1)) <http://evil.test>",
    "&lt;b&gt; &amp; \"quoted\" 'single' {{ 7 * 7 }} {% raw %}",
    "日本語 مرحبا 🚌 e\u0301",
    "# heading",
    "1. one",
    "--- >",
)
VOID = {"meta", "br", "img", "hr", "link", "input"}


class Page(HTMLParser):
    """Checks the nesting of tags and collects what tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self.open, tag
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, attribute: str) -> list[str]:
        return [attributes[attribute] or "" for _, attributes in self.tags if attribute in attributes]


def disagreement(**changes):
    fields = {
        "data_set": "set",
        "item": "7",
        "system": "gpt",
        "rating": "4.5",
        "score": "0.31",
        "residual": -1.416,
        "context": "Jane's car broke down.",
        "references": ("She took a bus.", "She walked."),
        "augmentations": (("masked 20%", 0.5, "She took a taxi."),),
        "candidate": "She flew.",
    }
    return Disagreement(**{**fields, **changes})


def scatter(metric="MARS", title="set", x=(0.1, 0.5, 0.9), y=(1.0, 2.0, 5.0)):
    return Scatter(title, metric, x, y, "r = 0.96")


BARS = Bars(
    "Means",
    ("MARS", "BLEU", "none"),
    (0.5, -0.2, np.nan),
    (0.4, -0.3, np.nan),
    (0.6, -0.1, np.nan),
    frozenset({0}),
)
TABLE = Table("Numbers", "A note.", ("metric", "r", "p"), (("MARS", "0.50", "0.900"), ("BLEU", "-0.25*", "n/a")))


def report(*parts, title="Title"):
    return Report(title, ("First.", "Second."), ("Mind this.",), (Section("Chapter", "Note.", tuple(parts)),))


def full_report():
    return report(TABLE, BARS, scatter(), scatter("BLEU"), scatter(title="other"), disagreement())


@functools.cache
def page_of(make) -> str:
    """The page of a report; drawing its charts takes long."""
    return to_html(make())


def tables_of(page: str) -> list[list[list[str]]]:
    root = lxml_html.document_fromstring(page)
    return [[[cell.text_content() for cell in row] for row in table.iter("tr")] for table in root.iter("table")]


def hostile_report():
    cells = tuple((text, text) for text in HOSTILE)
    texts = [
        disagreement(
            data_set=text, item=text, system=text, rating=text, score=text, context=text, references=(text,),
            augmentations=((text, 0.1, text),), candidate=text,
        )
        for text in HOSTILE
    ]  # fmt: skip
    count = len(HOSTILE)
    bars = Bars(HOSTILE[1], HOSTILE, (0.1,) * count, (0.0,) * count, (0.2,) * count)
    parts = (Table(HOSTILE[0], HOSTILE[1], (HOSTILE[2], HOSTILE[3]), cells), bars, *texts)
    scatters = tuple(Scatter(text, text, (0.0, 1.0), (0.0, 1.0), text) for text in HOSTILE)
    return Report(HOSTILE[0], HOSTILE, HOSTILE, (Section(HOSTILE[1], HOSTILE[2], (*parts, *scatters)),))


@pytest.mark.parametrize("make", [full_report, hostile_report, report])
def test_page_is_nested_well_and_needs_nothing_from_outside(make):
    text = page_of(make)
    page = Page(text)
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    targets = {*page.all("href"), *re.findall(r"url\((#[^)]*)\)", " ".join(page.all("clip-path")))}
    images = {target for target in targets if target.startswith("data:image/png;base64,")}
    assert {target[1:] for target in targets - images} <= set(ids)
    assert page.all("src") == []
    assert [tag for tag, _ in page.tags if tag in ("script", "link", "img", "iframe", "object", "base")] == [
        "script"
    ]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(headings))
    for name in page.all("aria-labelledby"):
        assert name in ids


def test_policy_admits_the_pages_script_and_no_other():
    text = page_of(full_report)
    script = re.search("<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(one["content"] for tag, one in Page(text).tags if one.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}';" in policy


def test_template_style_and_script_are_installed():
    root = Path(__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["mars_score"]
    beside = [path for path in (root / "mars_score" / "report").iterdir() if path.suffix not in (".py", "")]
    assert {path.suffix for path in beside} == {".j2", ".css", ".js"}
    assert all(any(fnmatch(f"report/{path.name}", pattern) for pattern in patterns) for path in beside)


def test_page_shows_hostile_texts_as_they_are():
    rows = tables_of(page_of(hostile_report))[0]
    assert rows == [[HOSTILE[2], HOSTILE[3]], *([text, text] for text in HOSTILE)]
    root = lxml_html.document_fromstring(page_of(hostile_report))
    assert [one.text_content() for one in root.find_class("candidate")] == list(HOSTILE)
    assert root.findtext("head/title") == HOSTILE[0]


def test_table_cells_captions_and_tints():
    text = to_html(report(TABLE))
    assert tables_of(text) == [[["metric", "r", "p"], ["MARS", "0.50", "0.900"], ["BLEU", "-0.25*", "n/a"]]]
    root = lxml_html.document_fromstring(text)
    assert [one.text for one in root.iter("caption")] == ["Numbers"]
    looks = [(cell.get("class"), cell.get("style")) for cell in root.iter("td")]
    assert looks == [("warm", "--share: 0.25"), (None, None), ("cold", "--share: 0.12"), ("none", None)]


def test_only_columns_of_coefficients_are_tinted():
    rows = (("a", "1.0", "0.5 [0.4, 0.6]", "3", "1.5"), ("b", "2.0", "\u22120.5", "0.5", "n/a"))
    root = lxml_html.document_fromstring(to_html(report(Table("t", "", ("", "rank", "r", "n", "x"), rows))))
    looks = [cell.get("class") for cell in root.iter("td")]
    assert looks == [None, "warm", None, None, None, "cold", None, "none"]


@pytest.mark.parametrize(
    "table", [TABLE, Table("t", "", ("a |", "b\nc"), tuple((text, text) for text in HOSTILE))]
)
def test_markdown_table_is_read_back_by_another_parser(table):
    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = markdown.parse(to_markdown(report(table)))
    cells = [after for before, after in pairwise(tokens) if before.type in ("th_open", "td_open")]
    read = ["".join("\n" if one.content == "<br>" else one.content for one in cell.children) for cell in cells]
    assert read == [text for row in (table.columns, *table.rows) for text in row]
    kinds = {one.type for cell in cells for one in cell.children}
    assert kinds <= {"text", "text_special", "html_inline"}


def test_markdown_shows_hostile_texts_as_text():
    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = markdown.parse(to_markdown(hostile_report()))
    assert {"html_block", "code_block", "fence", "hr", "ordered_list_open"}.isdisjoint(one.type for one in tokens)
    inline = [one for token in tokens for one in token.children or []]
    kinds = {"text", "text_special", "softbreak", "strong_open", "strong_close", "html_inline"}
    assert {one.type for one in inline} <= kinds
    assert {one.content for one in inline if one.type == "html_inline"} <= {"<br>"}
    strong = [one for one in inline if one.type == "strong_open"]
    assert len(strong) == 1 + len(HOSTILE)  # ours: the notices and one a disagreement


@pytest.mark.slow
def test_same_report_is_same_bytes_in_another_process():
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import test_meta_report; print(test_meta_report.hashes())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(hashes())


def hashes():
    texts = (page_of(full_report), to_markdown(full_report()))
    return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def test_points_that_are_not_finite_are_left_out():
    bad = float("nan")
    with_bad = scatter(x=(0.1, bad, 0.5, -np.inf, 0.9, 0.7), y=(1.0, 2.0, 2.0, 3.0, 5.0, bad))
    assert [list(one) for one in finite_points(with_bad)] == [[0.1, 0.5, 0.9], [1.0, 2.0, 5.0]]
    assert to_html(report(with_bad)) == to_html(report(scatter()))
    assert "| MARS   |      3 |" in to_markdown(report(with_bad))


@pytest.mark.parametrize("points", [(), (0.5,), (float("nan"),) * 3, (0.5, 0.5, 0.5)])
def test_charts_of_few_or_equal_points(points):
    assert regression_line(*finite_points(scatter(x=points, y=points))) is None
    Page(to_html(report(scatter(x=points, y=points))))


def test_regression_line_is_numpys():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 50))
    assert regression_line(x, y) == pytest.approx(tuple(np.polyfit(x, y, 1)))


def test_line_goes_through_the_drawn_points():
    """Points on a line, which are pixels, and their regression line, which is a shape, must meet on the page."""
    text = to_html(report(scatter(x=(0.0, 1.0), y=(1.0, 3.0))))
    svg = next(lxml_html.document_fromstring(text).iter("svg"))
    picture = next(svg.iter("image"))
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture.get("href").partition(",")[2]))))
    inked = np.argwhere(pixels[..., 3] > 100)  # row, column
    flip = float(re.fullmatch(r"scale\(1 -1\) translate\(0 (.*)\)", picture.get("transform"))[1])
    across = float(picture.get("x")) + inked[:, 1] * float(picture.get("width")) / pixels.shape[1]
    down = -(float(picture.get("y")) + flip + inked[:, 0] * float(picture.get("height")) / pixels.shape[0])
    line = next(one for one in svg.iter("path") if "var(--warm)" in one.get("style", ""))
    ends = [tuple(map(float, pair)) for pair in re.findall(r"[ML] ([\d.]+) ([\d.]+)", line.get("d"))]
    left = across < across.mean()
    found = [(across[side].mean(), down[side].mean()) for side in (left, ~left)]
    assert np.array(found) == pytest.approx(np.array(ends), abs=1)
    assert ends[0][1] > ends[1][1]  # y runs down the page


def test_bars_are_drawn_to_scale():
    svg = next(lxml_html.document_fromstring(to_html(report(BARS))).iter("svg"))
    shown = {"var(--accent)": [], "var(--plain)": []}
    for path in svg.iter("path"):
        for colour, widths in shown.items():
            if path.get("style") == f"fill: {colour}":
                across = [float(one) for one in re.findall(r"[ML] ([\d.]+)", path.get("d"))]
                widths.append(max(across) - min(across))
    (long,), (short,) = shown.values()
    assert long / short == pytest.approx(0.5 / 0.2, rel=1e-3)
    texts = [one.text for one in svg.iter("text")]
    assert {"MARS", "BLEU", "none", "0.50", "\u22120.20", "n/a"} <= set(texts)
    assert "BLEU -0.200 (-0.300 to -0.100)" in svg.get("aria-label")


def test_thousands_of_points_stay_small():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 5000))
    assert len(to_html(report(scatter(x=tuple(x), y=tuple(y))))) - len(to_html(report())) < 25_000


def test_empty_sections_say_so():
    assert "Nothing to show." in to_html(report())
    assert "Nothing to show." in to_markdown(report())
    Page(to_html(Report("t", (), (), ())))
    assert to_markdown(Report("t", (), (), ())) == "# t\n"


def test_long_texts_fold_on_the_page_and_are_cut_in_markdown():
    long = "word " * 500 + "end"
    page = to_html(report(disagreement(context=long)))
    assert "<summary>" in page
    assert long in page
    assert long not in to_markdown(report(disagreement(context=long)))


def test_disagreement_in_both():
    text = lxml_html.document_fromstring(to_html(report(disagreement()))).find_class("row")[0].text_content()
    figures, texts = ("gpt, 7", "4.5", "0.31", "\u22121.42", "below"), ("She walked.", "0.500", "She took a taxi.")
    for piece in (*figures, *texts, "She flew."):
        assert piece in text
    markdown = to_markdown(report(disagreement()))
    assert "**gpt on set, 7**: rating 4.5, score 0.31, residual \u22121.42" in markdown
    assert "  - masked 20%, similarity 0.500: She took a taxi." in markdown


def test_what_files_cannot_hold_is_replaced(tmp_path):
    assert showable("a\ud83db\x00c\r\nd\ud83d\ude8ce") == "a\ufffdb\ufffdc\nd\U0001f68ce"
    bad = "cut \ud83d and \x01"
    write_report(report(disagreement(candidate=bad), Bars("b", (bad,), (0.1,), (0.0,), (0.2,))), tmp_path)
    assert "cut \ufffd and \ufffd" in (tmp_path / "index.html").read_text("utf-8")
    assert "cut \ufffd and \ufffd" in (tmp_path / "report.md").read_text("utf-8")


def test_users_matplotlib_settings_neither_count_nor_change(monkeypatch):
    import matplotlib

    before = page_of(full_report)
    monkeypatch.setitem(matplotlib.rcParams, "axes.facecolor", "red")
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30)
    settings = dict(matplotlib.rcParams)
    assert to_html(full_report()) == before
    assert dict(matplotlib.rcParams) == settings


def test_without_matplotlib_only_charts_fail(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    folder = tmp_path / "new" / "folder"
    with pytest.raises(ImportError, match=r"pip install 'mars-score\[meta\]'"):
        write_report(full_report(), folder)
    assert not folder.exists()
    assert write_report(report(TABLE), folder) == (folder / "index.html", folder / "report.md")
    assert sorted(one.name for one in folder.iterdir()) == ["index.html", "report.md"]
