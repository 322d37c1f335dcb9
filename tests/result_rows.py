"""Rows of a run as its readers get them."""

from mars_score.runs import ResultRow


def result_rows(*pairs):
    """The rows of a file, from (row, score) pairs."""
    return [
        ResultRow(number, {}, row, {**score.to_dict(), "notices": [notice.name for notice in score.notices]})
        for number, (row, score) in enumerate(pairs)
    ]


def read(reader, *pairs):
    """Give the rows of (row, score) pairs to a reader, and return it."""
    for row in result_rows(*pairs):
        reader.add(row)
    return reader
