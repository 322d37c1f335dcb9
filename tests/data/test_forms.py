"""Rows in the forms of other tools: what of them is read as candidate, references, context and task.

docs/data.md has a table of these; each case is written here after the documentation of its tool.
"""

import json
import re
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import datasets
import pandas as pd
import pytest

from mars_score import MarsScorer
from mars_score.cli import make_parser
from mars_score.cli.arguments import input_columns
from mars_score.data.checking import check_contexts
from mars_score.data.columns import Columns
from mars_score.data.forms import Readings
from mars_score.data.reading import iter_rows, read_rows
from mars_score.errors import MarsWarning
from mars_score.integrations.harness_options import read_options
from mars_score.runs import InputFile
from mars_score.text import as_prose
from tests import ROOT, jsonl

DOCS = ROOT / "docs" / "data.md"
PARSER, *_ = make_parser()
QUESTION = "When does the ferry leave?"
FIRST, SECOND = TEXTS = ["The ferry leaves at ten.", "On Sundays it leaves at noon."]
ANSWER, REFERENCE = "It leaves at ten.", "At ten."
ROW = {"prediction": ANSWER, "reference": REFERENCE}
WITH_QUESTION = f"{QUESTION}\n\n{FIRST}\n\n{SECOND}"
FROM_MESSAGES = "candidate: the last message, which is the assistant's, from column 'messages'"


def says(role, content, **more):
    return {"role": role, "content": content, **more}


ASKED, TOLD, BRIEF = says("user", QUESTION), says("assistant", ANSWER), says("system", "Be brief.")
PAGES = [{"page_content": one, "metadata": {}} for one in TEXTS]
CALL = {"id": "c1", "type": "function", "function": {"name": "timetable", "arguments": "{}"}}


class Case(NamedTuple):
    """A row of a tool, names of columns, and what is read of it besides answer and reference."""

    row: dict
    names: dict
    context: str
    task: str
    read: list


def case(text, task, row, /, *, read=(), **names):
    """A case whose reference has its usual name, unless ``names`` say another."""
    return Case(row if "reference" in names else {**row, "reference": REFERENCE}, names, text, task, [*read])


passages = partial(case, WITH_QUESTION, "summary")
chat = partial(case, QUESTION, "dialogue")
brief_chat = partial(case, f"Be brief.\n{QUESTION}", "dialogue")
plain = partial(case, FIRST, "text")
CASES = {  # The name of a tool stands before the comma.
    "ragas": passages(
        {"user_input": QUESTION, "retrieved_contexts": TEXTS, "response": ANSWER},
        prediction="response",
        read=["context: 2 passages a row, with a question, from column 'retrieved_contexts'"],
    ),
    "ragas, with reference contexts": passages(
        {"user_input": QUESTION, "retrieved_contexts": TEXTS, "reference_contexts": [FIRST], "response": ANSWER},
        prediction="response",
    ),
    "ragas, before 0.2": passages(
        {"question": QUESTION, "contexts": TEXTS, "answer": ANSWER, "ground_truths": [REFERENCE]},
        prediction="answer",
        reference="ground_truths",
    ),
    "LangChain, a retrieval chain": passages(
        {"input": QUESTION, "context": PAGES, "answer": ANSWER}, prediction="answer"
    ),
    "LangChain, RetrievalQA": passages(
        {"query": QUESTION, "result": ANSWER, "source_documents": PAGES}, prediction="result"
    ),
    "LangChain, serialised": passages(
        {
            "question": QUESTION,
            "documents": [{"lc": 1, "type": "constructor", "id": ["a"], "kwargs": page} for page in PAGES],
            "prediction": ANSWER,
        }
    ),
    "LlamaIndex, nodes with scores": passages(
        {
            "query": QUESTION,
            "response": ANSWER,
            "source_nodes": [{"node": {"text": one, "class_name": "TextNode"}, "score": 0.8} for one in TEXTS],
        },
        prediction="response",
    ),
    "Haystack": passages(
        {
            "query": QUESTION,
            "documents": [{"id": "1", "content": one, "meta": {}, "score": 0.5} for one in TEXTS],
            "prediction": ANSWER,
        }
    ),
    "deepeval": passages(
        {"input": QUESTION, "actual_output": ANSWER, "expected_output": REFERENCE, "retrieval_context": TEXTS},
        prediction="actual_output",
        reference="expected_output",
    ),
    "OpenAI, a chat": brief_chat(
        {"messages": [says("developer", "Be brief."), ASKED, TOLD]},
        read=["context: 2 turns a row, from column 'messages'", FROM_MESSAGES],
    ),
    "OpenAI, parts": chat(
        {
            "messages": [
                says("user", [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {}}]),
                says("assistant", [{"type": "output_text", "text": ANSWER, "annotations": []}]),
            ]
        },
        read=["left out: images (1)"],
    ),
    "OpenAI, tools": chat(
        {"messages": [ASKED, says("assistant", None, tool_calls=[CALL, CALL]), says("tool", "10:00"), TOLD]},
        prediction="messages",
        read=["left out: calls of tools (2), results of tools (1)"],
    ),
    "OpenAI, request and response": chat(
        {"request": {"messages": [ASKED]}, "response": {"choices": [{"index": 0, "message": TOLD}]}},
        prediction="response.choices.0.message.content",
        context="request.messages",
    ),
    "promptfoo": plain(
        {"vars": {"question": QUESTION, "context": FIRST, "reference": REFERENCE}, "response": {"output": ANSWER}},
        prediction="response.output",
        reference="vars.reference",
        context="vars.context",
    ),
    "lm-eval": plain(
        {"doc": {"question": QUESTION, "context": FIRST}, "target": REFERENCE, "filtered_resps": [ANSWER]},
        prediction="filtered_resps",
        reference="target",
        context="doc.context",
    ),
    "Inspect": chat(
        {"input": [{"id": "m", **ASKED}], "target": REFERENCE, "output": {"completion": ANSWER}},
        prediction="output.completion",
        reference="target",
        context="input",
    ),
    "Inspect, metadata": case(
        f"{QUESTION}\n\n{FIRST}",
        "summary",
        {
            "input": QUESTION,
            "target": [REFERENCE],
            "output": {"completion": ANSWER},
            "metadata": {"docs": [FIRST]},
        },
        prediction="output.completion",
        reference="target",
        context="metadata.docs",
    ),
    "MT-Bench": case(
        QUESTION,
        "text",
        {
            "turns": [QUESTION, "And on Sundays?"],
            "reference": [REFERENCE, "At noon."],
            "choices": [{"index": 0, "turns": [ANSWER, "At noon."]}],
        },
        prediction="choices.0.turns.0",
        reference="reference.0",
        context="turns.0",
    ),
    "Hugging Face, a chat": brief_chat({"messages": [BRIEF, ASKED, TOLD]}),
    "Hugging Face, prompt and completion": chat(
        {"prompt": [ASKED], "completion": [TOLD]}, prediction="completion", context="prompt"
    ),
    "Hugging Face, ShareGPT": chat(
        {"conversations": [{"from": "human", "value": QUESTION}, {"from": "gpt", "value": ANSWER}]}
    ),
}


def read_file(path, *options):
    """The rows of a file as ``mars score`` makes them, and the lines that it prints on how they were read."""
    args = PARSER.parse_args(["score", str(path), *options])
    readings = Readings()
    chunks = list(InputFile(str(path), input_columns(args), getattr(args, "task", None)).chunks(8, readings))
    return [row for chunk in chunks for row in chunk.rows], list(readings.lines())


def options_of(case):
    return [part for name, column in case.names.items() for part in (f"--{name}-column", column)]


@pytest.fixture
def table_rows(monkeypatch):
    """Makes the rows of a table as ``MarsScorer.score_table`` does."""
    monkeypatch.setattr(MarsScorer, "score_rows", lambda self, rows, numbers=None, *, explain=False: rows)
    return lambda table, columns=None, **settings: MarsScorer(**settings).score_table(table, columns=columns)


def check_row(row, case):
    assert (row.candidate, row.references) == (ANSWER, (REFERENCE,))
    assert row.task == case.task
    assert prose(row) == case.context


def prose(row):
    """The context with its question; the question may be kept apart."""
    question = getattr(row, "question", "")
    return as_prose(row.context) if not question else f"{question}\n\n{as_prose(row.context)}"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_files_of_other_tools(tmp_path, case):
    rows, lines = read_file(jsonl.write(tmp_path / "rows.jsonl", [case.row] * 2), *options_of(case))
    assert len(rows) == 2
    for row in rows:
        check_row(row, case)
    doubled = [re.sub(r"\((\d+)\)", lambda count: f"({2 * int(count[1])})", line) for line in case.read]
    assert set(doubled) <= set(lines)


@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_tables_of_other_tools(table_rows, case):
    for make in (list, pd.DataFrame, datasets.Dataset.from_list):
        for row in table_rows(make([case.row] * 2), case.names):
            check_row(row, case)


@pytest.mark.parametrize("name", ["ragas", "LangChain, serialised", "Haystack", "OpenAI, tools"])
def test_csv_files_of_other_tools(tmp_path, name):
    case = CASES[name]
    cells = {title: value if isinstance(value, str) else json.dumps(value) for title, value in case.row.items()}
    pd.DataFrame([cells] * 2).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.warns(MarsWarning, match="hold lists or objects"):
        rows, _ = read_file(tmp_path / "rows.csv", *options_of(case))
    for row in rows:
        check_row(row, case)


def test_the_table_of_the_page_has_every_tool():
    section = DOCS.read_text(encoding="utf-8").partition("## Rows of other tools")[2].partition("\n## ")[0]
    lines = re.sub("[*`]", "", section).splitlines()
    tools = {line.split("|")[1].strip() for line in lines if line.startswith("| ")}
    assert {name.partition(",")[0] for name in CASES} <= tools


# Passages

NAMES = [
    *("retrieved_contexts", "contexts", "documents", "source_documents", "context_list", "retrieved_documents"),
    *("chunks", "passages", "Passages", "retrievedContexts", "Source Documents", "retrieved-chunks", "docs"),
]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        *((name, "question") for name in NAMES),
        *(("contexts", asked) for asked in ("user_input", "query", "input", "Question", None)),
    ],
)
def test_passages_under_their_usual_names(tmp_path, table_rows, name, asked):
    columns = {name: TEXTS, **({asked: QUESTION} if asked else {})}
    rows = []
    for row in ({**ROW, **columns}, {**ROW, "context": columns}):
        rows += [*read_file(jsonl.write(tmp_path / "rows.jsonl", [row]))[0], *table_rows([row])]
    rows += table_rows(pd.DataFrame([{**ROW, **columns}]))
    expected = WITH_QUESTION if asked else f"{FIRST}\n\n{SECOND}"
    assert [(prose(row), row.task) for row in rows] == [(expected, "summary")] * 5


NO_PASSAGES = {
    "turns under their own name": ({"context": TEXTS}, f"{FIRST}\n{SECOND}", "dialogue"),
    "a text under the name": ({"contexts": FIRST}, FIRST, "text"),
    "messages under the name": ({"contexts": [ASKED]}, QUESTION, "dialogue"),
    "a record under the name": ({"contexts": {"name": "Jane"}}, "name: Jane", "data"),
    "a record with numbers": ({"context": {"id": 1, "chunks": [1, 2]}}, "id: 1, chunks: [1, 2]", "data"),
    "a record with a text": ({"context": {"id": 1, "documents": "two"}}, "id: 1, documents: two", "data"),
    "a record of a question": ({"context": {"question": "a", "answer": "b"}}, "question: a, answer: b", "data"),
    "turns in a record's only field": ({"context": {"conversation": ["a", "b"]}}, "a\nb", "dialogue"),
    "a record with a role": ({"context": {"role": "nurse", "name": "A"}}, "role: nurse, name: A", "data"),
    "an empty list in a record": ({"context": {"id": 1, "documents": []}}, "id: 1, documents: []", "data"),
}


@pytest.mark.parametrize("case", NO_PASSAGES.values(), ids=NO_PASSAGES)
def test_what_is_no_passages_stays_what_it_is(tmp_path, table_rows, case):
    columns, text, task = case
    rows, _ = read_file(jsonl.write(tmp_path / "rows.jsonl", [{**ROW, **columns}]))
    rows += table_rows([{**ROW, **columns}])
    assert [(as_prose(row.context), row.task) for row in rows] == [(text, task)] * 2


def test_a_dialogue_that_is_said_to_be_one_is_one(tmp_path, table_rows):
    row = {**ROW, "contexts": TEXTS, "kind": "dialogue"}
    path = jsonl.write(tmp_path / "rows.jsonl", [row, {**row, "kind": ""}])
    assert [row.task for row in read_file(path, "--task", "dialogue")[0]] == ["dialogue"] * 2
    assert [row.task for row in read_file(path, "--task-column", "kind")[0]] == ["dialogue", "summary"]
    assert [row.task for row in table_rows([row], task="dialogue")] == ["dialogue"]
    assert table_rows([row], {"task": "kind"})[0].context == f"{FIRST}\n{SECOND}"


@pytest.mark.parametrize("names", [("retrieved_contexts", "documents"), ("contexts", "context")])
def test_columns_that_could_both_be_meant_are_named(tmp_path, table_rows, names):
    row = {**ROW, **{name: [FIRST] for name in names}}
    path = jsonl.write(tmp_path / "rows.jsonl", [row])
    with pytest.raises(ValueError, match=r"rows.jsonl:1: columns .* could (both|all) hold the contexts; "):
        read_file(path)
    with pytest.raises(ValueError, match=r"could (both|all) hold the contexts; .*: columns=\{'context': ...\}"):
        table_rows([row])
    assert read_file(path, "--context-column", names[0])[0][0].task == "summary"


@pytest.mark.parametrize(
    "document",
    [
        {"page_content": FIRST, "metadata": {}},
        {"content": FIRST, "id": 3},
        {"title": "Ferries", "text": FIRST},
        {"node": {"text": FIRST}, "score": 0.5},
        {"node": {"text": None, "text_resource": {"text": FIRST}}, "score": 0.5},
        {"document": {"page_content": FIRST}, "score": 1},
        {"passage": FIRST, "score": 1},
        {"score": 0.5, "content": [{"type": "text", "text": FIRST}]},
        SimpleNamespace(page_content=FIRST, metadata={}),
        SimpleNamespace(node=SimpleNamespace(text=FIRST), score=0.5),
    ],
)
def test_texts_of_documents(document):
    for context in ([document], {"passages": [document]}, {"documents": [document, FIRST]}):
        [checked] = check_contexts([context])
        assert (set(checked.text.split("\x1e")), checked.task) == ({FIRST}, "summary")


@pytest.mark.parametrize("blank", ["", " \n", "\u200b", None, float("nan"), {"page_content": ""}, {"text": None}])
def test_blank_passages_are_skipped_and_counted(tmp_path, blank):
    with pytest.warns(MarsWarning, match=r"left out: blank passages \(2\)"):
        [context] = check_contexts([{"passages": [blank, FIRST, blank]}])
    assert context.text == FIRST
    with pytest.warns(MarsWarning, match=r"left out: blank passages \(1\)"):
        assert check_contexts([{"passages": [blank]}])[0].text == ""
    path = jsonl.write(tmp_path / "rows.jsonl", [{**ROW, "documents": [FIRST, blank]}] * 3)
    rows, lines = read_file(path)
    assert [row.context for row in rows] == [FIRST] * 3
    assert "left out: blank passages (3)" in lines


@pytest.mark.parametrize(
    "context",
    [
        {"id": 1, "retrieved_contexts": [FIRST]},
        {"question": QUESTION, "context": FIRST},
        {"contexts": [FIRST], "documents": [SECOND]},
        {"messages": [ASKED], "tools": [{"type": "function"}]},
        {"id": 7, "conversations": [{"from": "human", "value": QUESTION}]},
    ],
)
def test_what_looks_like_passages_or_a_chat_but_is_none_is_refused(context):
    with pytest.raises(TypeError, match=r"contexts\[0\] must be a string, got dict .*; .* in a record "):
        check_contexts([context])


@pytest.mark.parametrize(
    "turn", [{"speaker": "A", "text": FIRST}, {"author": "A", "content": FIRST}, {"content": FIRST}]
)
def test_turns_in_another_form_are_no_passages(turn):
    with pytest.raises(TypeError, match='must be a message with "role" and "content"'):
        check_contexts([[turn, turn]])


def test_passages_of_a_vector_store_are_those_of_its_only_question():
    for context in ({"documents": [TEXTS]}, {"question": QUESTION, "context": TEXTS}):
        assert check_contexts([context])[0].text.split("\x1e")[-2:] == TEXTS


def test_fields_of_harnesses_are_passages_by_their_names():
    options = read_options({"context": "retrieved_contexts"})
    fields = {"user_input": QUESTION, "retrieved_contexts": TEXTS}
    assert options.find_context(fields, "vars") == {"question": QUESTION, "passages": TEXTS}
    assert read_options({}).find_context({"context": [FIRST]}, "vars") == [FIRST]


# Chats

CHATS = {  # messages of a context, its text, what is left out
    "text parts": ([says("user", [{"type": "text", "text": FIRST}, {"text": SECOND}])], f"{FIRST} {SECOND}", ""),
    "parts that are texts": ([says("user", TEXTS)], f"{FIRST} {SECOND}", ""),
    "images and sound": (
        [says("user", [{"type": "input_image"}, {"type": "input_audio"}, {"type": "text", "text": FIRST}])],
        FIRST,
        "left out: images (1), parts that are no text (1)",
    ),
    "calls": (
        [ASKED, says("assistant", "Let me see.", tool_calls=[CALL]), says("tool", "10")],
        f"{QUESTION}\nLet me see.",
        "left out: calls of tools (1), results of tools (1)",
    ),
    "calls in parts": (
        [
            ASKED,
            says("assistant", [{"type": "thinking", "thinking": "..."}, {"type": "tool_use", "name": "a"}]),
            says("user", [{"type": "tool_result", "content": "10"}, {"type": "text", "text": FIRST}]),
        ],
        f"{QUESTION}\n{FIRST}",
        "left out: calls of tools (1), parts of reasoning (1), results of tools (1)",
    ),
    "a function's call": (
        [ASKED, says("assistant", None, function_call={"name": "a"}), says("function", "b")],
        QUESTION,
        "left out: calls of tools (1), results of tools (1)",
    ),
    "no content": (
        [says("assistant", None), says("user", ""), ASKED],
        QUESTION,
        "left out: messages without a text (2)",
    ),
    "two in sequence": ([ASKED, says("user", FIRST)], f"{QUESTION}\n{FIRST}", ""),
    "instructions by two": ([BRIEF, says("developer", "Be kind."), ASKED], f"Be brief.\nBe kind.\n{QUESTION}", ""),
    "LangChain": ([{"type": "human", "content": QUESTION}], QUESTION, ""),
    "LangChain, in data": ([{"type": "human", "data": {"content": QUESTION, "type": "human"}}], QUESTION, ""),
    "ShareGPT": (
        [{"from": "gpt", "value": FIRST}, {"from": "human", "value": QUESTION}],
        f"{FIRST}\n{QUESTION}",
        "",
    ),
    "roles in capitals": ([says("User", FIRST), says("Human", QUESTION)], f"{FIRST}\n{QUESTION}", ""),
    "Gemini": ([{"role": "user", "parts": [{"text": QUESTION}]}], QUESTION, ""),
}


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
def test_chats_as_they_are_logged(chat):
    messages, text, left_out = chat
    for context in (messages, {"messages": messages}, tuple(messages)):
        readings = Readings()
        [checked] = check_contexts([context], readings=readings)
        assert (checked.text, checked.task) == (text, "dialogue")
        assert list(readings.warnings()) == ([left_out] if left_out else [])


@pytest.mark.parametrize(
    "answer", [TOLD, {"role": "model", "parts": [{"text": ANSWER}]}, {"from": "gpt", "value": ANSWER}]
)
def test_the_last_message_is_the_candidate(tmp_path, answer):
    for messages, text, _ in CHATS.values():
        row = {"messages": [*messages, answer], "reference": REFERENCE}
        path = jsonl.write(tmp_path / "rows.jsonl", [row])
        for options in ((), ("--prediction-column", "messages"), ("--context-column", "messages")):
            [found], lines = read_file(path, *options)
            assert (found.candidate, found.context) == (ANSWER, text)
            assert FROM_MESSAGES in lines
    [found], _ = read_file(path, "--no-use-context")
    assert (found.candidate, found.context) == (ANSWER, "")


def test_an_answer_beside_its_chat(tmp_path, table_rows):
    path = jsonl.write(tmp_path / "rows.jsonl", [{"messages": [ASKED], **ROW}])
    assert [read_file(path)[0][0].context, table_rows(jsonl.read(path))[0].context] == [QUESTION] * 2
    jsonl.write(path, [{"messages": [ASKED, TOLD], **ROW}])
    with pytest.raises(ValueError, match=r"ends with a message of the assistant; .* last message as the cand"):
        read_file(path)


def test_several_chats_of_a_row_are_several_candidates(tmp_path):
    row = {"messages": [ASKED], "answers": [[TOLD], [{**TOLD, "content": "At noon."}]], "reference": REFERENCE}
    rows, _ = read_file(jsonl.write(tmp_path / "rows.jsonl", [row]), "--prediction-column", "answers")
    assert [(row.candidate, row.context) for row in rows] == [(ANSWER, QUESTION), ("At noon.", QUESTION)]


def test_the_output_keeps_the_chat(tmp_path, tiny_mini, run):
    row = {"messages": [ASKED, TOLD], "reference": REFERENCE}
    path, out = jsonl.write(tmp_path / "rows.jsonl", [row]), tmp_path / "out.jsonl"
    code, text, _ = run("score", path, "--out", out)
    assert code == 0
    assert FROM_MESSAGES in text
    assert jsonl.read(out)[0]["messages"] == row["messages"]
    assert run("score", path, "--fail-under-baseline", out)[0] == 0


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([ASKED], "ends with a message of the user; the last one is the candidate, and must be the assistant's"),
        ([TOLD, {"role": "tool", "content": "a"}], "ends with a message of the tool"),
        ([ASKED, {"role": "assistant"}], 'must be a message with "role" and "content"'),
        ([ASKED, {**TOLD, "content": 3}], 'messages\'\\[1\\]\\["content"\\] must be a string, got int'),
        ([TOLD, TOLD], "ends with a message of the assistant; the candidate answers"),
    ],
)
def test_chats_without_an_answer_are_refused(tmp_path, messages, fault):
    path = jsonl.write(tmp_path / "rows.jsonl", [{"messages": messages, "reference": REFERENCE}])
    with pytest.raises((TypeError, ValueError), match=fault) as caught:
        read_file(path, "--prediction-column", "messages")
    assert "rows.jsonl:1: column 'messages'" in str(caught.value)


def test_a_call_of_a_tool_is_a_blank_answer(tmp_path):
    row = {"messages": [ASKED, says("assistant", None, tool_calls=[CALL])], "reference": REFERENCE}
    [found], lines = read_file(jsonl.write(tmp_path / "rows.jsonl", [row]))
    assert found.candidate == ""
    assert "left out: calls of tools (1)" in lines


def test_json_that_is_an_answer_stays_a_text(tmp_path):
    path = tmp_path / "rows.csv"
    for text in ('[{"name": "Jane"}]', '{"role": "user"}', "[]"):
        pd.DataFrame([{**ROW, "prediction": text, "context": FIRST}]).to_csv(path, index=False)
        assert read_file(path)[0][0].candidate == text
    assert [record.values["prediction"] for record in iter_rows(path)] == ["[]"]


@pytest.mark.parametrize("title", ["candidate", "candidates"])
def test_a_column_of_candidates_may_be_called_so(title, tmp_path):
    """As in files of ratings; where there is a column of predictions, that is read."""
    row = {title: "a", "reference": "b", "context": "c"}
    for columns, candidate in ((row, "a"), ({**row, "prediction": "d"}, "d")):
        path = jsonl.write(tmp_path / "rows.jsonl", [columns])
        assert [row.candidate for row in Columns.named({}).rows(read_rows(path))] == [candidate]
