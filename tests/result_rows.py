"""Rows of a run as its readers get them, and the gates among these."""

import argparse

from mars_score.cli.gates import add_gate_options, make_gates
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


def gates_of(*options, baseline=None):
    """The gates that options of the command ask for."""
    parser = argparse.ArgumentParser()
    add_gate_options(parser)
    return make_gates(parser.parse_args(list(map(str, options))), baseline)
