"""Candidates that are no answers: error messages, placeholders and punctuation are told of, answers are not."""

import pytest

from mars_score import MarsScorer
from mars_score.data.cleaning import is_placeholder
from mars_score.errors import MarsWarning, Notice
from tests import word_recall

NO_ANSWERS = [
    *("N/A", "n/a", "NA", "null", "None", "nan", "NaN", "NULL", "undefined", "<NA>", "[null]", '"None".', "nil"),
    *("-", "...", "\u2014", "?!", "\u3002", "\u2026", "***", "''", "[]", "{}", "# "),
    "Error: 429",
    "ERROR - the server could not be reached",
    "Error 503",
    "error code: 500",
    "Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
    "openai.RateLimitError: You exceeded your current quota",
    "TimeoutError()",
    "RuntimeError: CUDA out of memory",
    "`ValueError: no tokens`",
    "502 Bad Gateway",
    "HTTP/1.1 429 Too Many Requests",
    "Too Many Requests",
    "Internal Server Error",
    "Traceback (most recent call last):\n  File 'a.py'",
    "I\u2019m sorry, but an unexpected error occurred. Please try again.",
    "Sorry, something went wrong.",
    "Oops! Something went wrong on our side.",
    "Something went wrong.",
    "An internal error has occurred.",
    "An error occurred while processing your request.",
    "Request timed out.",
    "Connection error.",
    "You exceeded your current quota, please check your plan.",
    "Rate limit exceeded",
    "This model's maximum context length is 4097 tokens.",
    "The server is currently overloaded with other requests.",
    '{"error": {"code": 429}}',
    "<!DOCTYPE html><html><head><title>502</title>",
]
ANSWERS = [
    *("No", "Yes", "0", "42", "-5", "A", "None of them came.", "Nil desperandum is Latin.", "\U0001f600", "C++"),
    "There was an error in the report that the council published.",
    "Human error: the driver fell asleep.",
    "An error in the timetable left forty people behind.",
    "I'm sorry, I cannot help with that.",
    "Errors: none were found in twelve runs of the engine.",
    "Null Island lies in the Atlantic.",
    "Nan is my grandmother.",
    "The request was granted.",
    "429 people came to the meeting.",
    "Not found among the ruins was any gold.",
    "Timeouts were common in the game.",
    "The connection was refused by the operator of the line.",
    "404",
    "NASA sent it.",
    "{name: 'Jane'}",
    "... and then they left.",
    "Something went missing.",
    "Too many requests came in for the council to answer.",
]


@pytest.mark.parametrize("text", NO_ANSWERS)
def test_placeholders_are_no_answers(text):
    assert is_placeholder(text)
    assert not is_placeholder(text, ("At ten.", text))  # what a reference says is an answer


@pytest.mark.parametrize("text", ANSWERS)
def test_short_answers_are_no_placeholders(text):
    assert not is_placeholder(text)


@pytest.mark.parametrize("unit", ["a.", "error", "an error ", "(", " ", "sorry ", "a", "4", "http ", "[", "an a "])
def test_loops_of_language_models_take_no_time(unit):
    is_placeholder(unit * (10**5 // len(unit)))


def test_a_notice_counts_placeholders(word_models):
    scorer = MarsScorer("mini", **word_recall.SETTINGS)
    candidates = ["a b", "N/A", "Error: 429", "", "..."]
    with pytest.warns(MarsWarning, match=r"3 of 5 rows \(index 1, 2, 4\)"):
        result = scorer.score(candidates, ["a b"] * 5, ["c"] * 5)
    flags = [Notice.NO_ANSWER in row.notices for row in result.row_scores]
    assert flags == [False, True, True, False, True]
    assert any(Notice.NO_ANSWER.message in notice for notice in result.notices)
