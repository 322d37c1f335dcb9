"""``mars augment --requests`` and ``--responses``: samples that another engine writes."""

import jsonl
import pytest

ROWS = [
    {"id": 1, "reference": ["She took the bus to work."], "context": "Jane's car broke down on Monday."},
    {"id": 2, "reference": ["Yes, at nine."], "context": "Are you there?\nI am.\nShall we meet?"},
    {"id": 3, "reference": ["She took the bus to work."], "context": "Jane's car broke down on Monday."},
    {"id": 4, "reference": ["There is a pub."], "context": "name[The Mill], food[English]"},
    {"id": 5, "reference": ["Nothing."], "context": " "},
]


@pytest.fixture
def run(tmp_path, run):
    """Augments the rows; returns exit code, standard output, standard error."""
    path = jsonl.write(tmp_path / "rows.jsonl", ROWS)
    return lambda *options: run("augment", path, "--preset", "mini", *options)


@pytest.fixture
def requests(run, tmp_path):
    path = tmp_path / "requests.jsonl"
    assert run("--requests", path, "--writer", "some/model", "--sample-count", "2")[0] == 0
    return jsonl.read(path)


def answer(request, *texts, finish="stop"):
    choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": finish} for text in texts]
    return {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": {"choices": choices}}}


def join(run, tmp_path, lines, *options):
    """Join the rows with answers, into out.jsonl."""
    answers = jsonl.write(tmp_path / "answers.jsonl", lines)
    return run("--responses", answers, "--out", tmp_path / "out.jsonl", *options)


def test_requests(requests):
    """One for each different context with references of its length; roles alternate in a dialogue."""
    assert [request["url"] for request in requests] == ["/v1/chat/completions"] * 3
    assert len({request["custom_id"] for request in requests}) == 3
    asked, dialogue, data = (request["body"].pop("messages") for request in requests)
    options = {"n": 2, "temperature": 0.9, "top_p": 0.95, "seed": 0, "max_tokens": 32}
    assert requests[0]["body"] == {"model": "some/model", **options}
    assert [turn["role"] for turn in dialogue] == ["system", "user", "assistant", "user"]
    assert dialogue[-1]["content"] == "Shall we meet?"
    assert asked[1]["content"].startswith("Jane's car broke down on Monday.\n\nContinue")
    assert data[1]["content"].endswith("Say in one sentence what the record above says.")


def test_answers_come_back_in_any_order(run, requests, tmp_path):
    story, dialogue, data = requests
    lines = [
        answer(data, "As an AI, I can't.", "The Mill serves English food. It"),
        answer(story, "She took\nthe bus.", "She took the bus."),
        {"custom_id": dialogue["custom_id"], "response": None, "error": {"message": "too long"}},
        answer(data, "The Mill serves English food. It", finish="length"),
    ]
    code, _, errors = join(run, tmp_path, lines, "--sample-count", "2")
    bus, mill = ["She took the bus."], ["The Mill serves English food."]  # without its unfinished end
    samples = [{**row, "samples": texts} for row, texts in zip(ROWS, [bus, [], bus, mill, []], strict=True)]
    assert (code, jsonl.read(tmp_path / "out.jsonl")) == (0, samples)
    assert "2 answers were dropped: duplicate" in errors
    assert "1 requests failed, the first with: {'message': 'too long'}" in errors
    assert "1 rows have no answer and no samples" in errors


def test_answers_to_other_requests(failing, requests, tmp_path):
    error = join(failing, tmp_path, [answer(requests[0], "She took the bus.")], "--task", "summary")
    assert "holds no answer to these rows" in error
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("line", [{"text": "x"}, {"custom_id": "x", "response": {"body": {"choices": [{}]}}}])
def test_bad_answers(failing, tmp_path, line):
    assert "answers.jsonl:1: no answer of a batch" in join(failing, tmp_path, [line])


def test_rows_that_have_samples_already(failing, requests, tmp_path):
    jsonl.write(tmp_path / "rows.jsonl", [{**ROWS[0], "samples": ["She walked."]}])
    assert "a column 'samples' of its own" in join(failing, tmp_path, [answer(requests[0], "She took the bus.")])
