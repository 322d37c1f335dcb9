"""Reports are read back with other parsers: markdown-it and lxml."""

import sys
from itertools import pairwise

import pytest
from lxml import etree
from markdown_it import MarkdownIt

from mars_score.report import write_report
from mars_score.report.charts import save_chart
from mars_score.report.contents import Bars, Table, showable
from mars_score.report.markup import line_to_markdown, table_to_markdown

HOSTILE = (
    "<script>alert(1)</script>",
    "a | b\nc",
    "\\| `code` **bold** _it_ ~~gone~~ $x^2$",
    "![picture](http://evil.test/y.png) [link](javascript:alert(1)) <http://evil.test>",
    "&lt;b&gt; &amp; \"quoted\" 'single' {{ 7 * 7 }} {% raw %}",
    "日本語 مرحبا 🚌 e\u0301",
    "# heading",
    "1. one",
    "--- >",
)
NAN = float("nan")
BARS = Bars(
    "Means", ("MARS", "BLEU", "none"), (0.5, -0.2, NAN), (0.4, -0.3, NAN), (0.6, -0.1, NAN), frozenset({0})
)
TABLE = Table("Numbers", "A note.", ("metric", "r", "p"), (("MARS", "0.50", "0.900"), ("BLEU", "-0.25*", "n/a")))
PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@pytest.mark.parametrize(
    "table", [TABLE, Table("t", "", ("a |", "b\nc"), tuple((text, text) for text in HOSTILE))]
)
def test_markdown_table_is_read_back_by_another_parser(table):
    tokens = PARSER.parse(table_to_markdown(table))
    cells = [after for before, after in pairwise(tokens) if before.type in ("th_open", "td_open")]
    read = ["".join("\n" if one.content == "<br>" else one.content for one in cell.children) for cell in cells]
    assert read == [text for row in (table.columns, *table.rows) for text in row]
    assert {one.type for cell in cells for one in cell.children} <= {"text", "text_special", "html_inline"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_line_of_markdown_is_its_text(text):
    opened, inline, closed = PARSER.parse(line_to_markdown(text))
    assert (opened.type, closed.type) == ("paragraph_open", "paragraph_close")
    assert "".join(one.content for one in inline.children) == " ".join(text.split())


def test_a_report_links_its_charts(tmp_path):
    path = write_report(tmp_path / "new" / "folder", "Title", ["First."], [TABLE, BARS, BARS])
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n- First.\n\n**Numbers**\n")
    for number in (1, 2):
        assert f"](chart-{number}.svg)" in text
        assert etree.parse(path.with_name(f"chart-{number}.svg")).getroot().tag.endswith("}svg")


def test_bars_have_labels_and_values(tmp_path):
    save_chart(BARS, tmp_path / "bars.svg")
    texts = {text.strip() for text in etree.parse(tmp_path / "bars.svg").getroot().itertext()}
    assert {"MARS", "BLEU", "none", "0.50", "\u22120.20", "n/a"} <= texts


def test_what_files_cannot_hold_is_replaced(tmp_path):
    assert showable("a\ud83db\x00c\r\nd\ud83d\ude8ce") == "a\ufffdb\ufffdc\nd\U0001f68ce"
    path = write_report(tmp_path, "cut \ud83d and \x01", [], [])
    assert path.read_text("utf-8") == "# cut \ufffd and \ufffd\n"


def test_users_matplotlib_settings_neither_count_nor_change(monkeypatch, tmp_path):
    import matplotlib

    save_chart(BARS, tmp_path / "before.svg")
    monkeypatch.setitem(matplotlib.rcParams, "axes.facecolor", "red")
    settings = dict(matplotlib.rcParams)
    save_chart(BARS, tmp_path / "after.svg")
    assert (tmp_path / "after.svg").read_bytes() == (tmp_path / "before.svg").read_bytes()
    assert dict(matplotlib.rcParams) == settings


def test_without_matplotlib_only_charts_fail(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    folder = tmp_path / "folder"
    with pytest.raises(ImportError, match=r"pip install 'mars-score\[meta\]'"):
        write_report(folder, "Title", [], [TABLE, BARS])
    assert not folder.exists()
    assert write_report(folder, "Title", [], [TABLE]).is_file()
