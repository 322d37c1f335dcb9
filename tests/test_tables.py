"""Tables are read back with another parser: markdown-it."""

from itertools import pairwise

import pytest
from markdown_it import MarkdownIt

from mars_score.tables import Table, line_to_markdown, showable, table_to_markdown

HOSTILE = (
    *("<script>alert(1)</script>", "a | b\nc", "\\| `code` **bold** _it_ ~~gone~~ $x^2$"),
    "![picture](http://evil.test/y.png) [link](javascript:alert(1)) <http://evil.test>",
    *("&lt;b&gt; &amp; \"quoted\" 'single' {{ 7 * 7 }} {% raw %}", "日本語 مرحبا 🚌 e\u0301", "# heading"),
    *("1. one", "--- >"),
)
TABLE = Table("Numbers", "A note.", ("metric", "r", "p"), (("MARS", "0.50", "0.900"), ("BLEU", "-0.25*", "n/a")))
PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@pytest.mark.parametrize(
    "table", [TABLE, Table("t", "", ("a |", "b\nc"), tuple((text, text) for text in HOSTILE))]
)
def test_markdown_table_is_read_back_by_another_parser(table):
    tokens = PARSER.parse(table_to_markdown(table))
    cells = [after for before, after in pairwise(tokens) if before.type in ("th_open", "td_open")]
    read = ["".join("\n" if part.content == "<br>" else part.content for part in cell.children) for cell in cells]
    assert read == [text for row in (table.columns, *table.rows) for text in row]
    assert {part.type for cell in cells for part in cell.children} <= {"text", "text_special", "html_inline"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_line_of_markdown_is_its_text(text):
    opened, inline, closed = PARSER.parse(line_to_markdown(text))
    assert (opened.type, closed.type) == ("paragraph_open", "paragraph_close")
    assert "".join(part.content for part in inline.children) == " ".join(text.split())


def test_what_files_cannot_hold_is_replaced():
    assert showable("a\ud83db\x00c\r\nd\ud83d\ude8ce") == "a\ufffdb\ufffdc\nd\U0001f68ce"
    assert line_to_markdown("cut \ud83d and \x01") == "cut \ufffd and \ufffd"
