"""What was found in the sentences of a candidate, in words and in every output."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

import mars_score
from mars_score.cli.run_summary import SHOWN, Summary
from mars_score.errors import Notice
from mars_score.explanation import Explanation, marked_page
from mars_score.findings import Finding, brief_findings, findings_of, label_of, listed, marked_parts, words_instead
from mars_score.results import MarsResult
from mars_score.rows import Row, RowScore, Verdict
from mars_score.scorer import MarsScorer
from tests import jsonl, word_recall
from tests.result_rows import gates_of, read

ONE, TWO = "Tickets cost 25 dollars in Rome.", "Anna Berg left in 1970."
SUMMARY = Row(f"{ONE} {TWO}", (), "The context.", (), "summary")
PRICE = Verdict(ONE, None, "Tickets cost 20 dollars.", "context", ("25 dollars",))
LIKELY = Verdict(TWO, 0.974, "She stayed.", "context", number=2)
UNLIKELY = replace(LIKELY, probability=0.03)


def missing(*words, sentence=TWO, number=2):
    return Verdict(sentence, None, "", "context", words, number, absent=words)


def said(row=SUMMARY, **verdicts):
    return [finding.with_number() for finding in findings_of(row, RowScore(0.5, **verdicts))]


# In words


PRICE_DIFFERS = 'sentence 1 contradicts the context "Tickets cost 20 dollars." (25 dollars instead of 20)'
YEAR_LACKS = "sentence 2: 1970 is not in the context"
PRICE_LACKS = missing("25 dollars", sentence=ONE, number=1)


@pytest.mark.parametrize(
    ("contradicted", "unsupported", "expected"),
    [
        ([], [], []),
        ([PRICE], [], [PRICE_DIFFERS]),
        ([LIKELY], [], ['sentence 2 contradicts the context "She stayed." (0.97)']),
        (
            [replace(LIKELY, words=("left", "1970"))],
            [],
            ['sentence 2 contradicts the context "She stayed." (left and 1970)'],
        ),
        ([], [missing("1970")], [YEAR_LACKS]),
        ([], [missing("Anna", "1970")], ["sentence 2: Anna and 1970 are not in the context"]),
        ([], [missing("Anna", "Berg")], ["sentence 2: Anna Berg is not in the context"]),
        ([], [UNLIKELY], ["sentence 2: the context does not support it (0.03)"]),
        # Of most of its words none is told.
        (
            [],
            [replace(UNLIKELY, words=("Anna", "Berg", "left"))],
            ["sentence 2: the context does not support it (0.03)"],
        ),
        (
            [],
            [replace(UNLIKELY, words=("1970",), absent=("1970",))],
            [f"{YEAR_LACKS}; the context does not support it (0.03)"],
        ),
        (
            [],
            [replace(LIKELY, words=("Berg", "left", "1970"), absent=("1970",))],
            [f'{YEAR_LACKS}; the context does not support "Berg left"'],
        ),
        ([PRICE], [PRICE_LACKS], [PRICE_DIFFERS]),
        (
            [PRICE],
            [missing("25 dollars", "Rome", sentence=ONE, number=1), missing("1970")],
            [f"{PRICE_DIFFERS}; Rome is not in the context", YEAR_LACKS],
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_words(contradicted, unsupported, expected):
    assert said(contradicted=tuple(contradicted), unsupported=tuple(unsupported)) == expected


def test_the_only_sentence_needs_no_number():
    row = replace(SUMMARY, candidate=TWO)
    assert said(row, unsupported=(missing("1970", number=1),)) == ["1970 is not in the context"]
    assert said(row, contradicted=(replace(LIKELY, number=1),)) == ['contradicts the context "She stayed." (0.97)']


@pytest.mark.parametrize(
    ("task", "references", "sources"),
    [
        ("summary", ("r",), "the context"),
        ("data", (), "the record"),
        ("data", ("r",), "the record or its references"),
    ],
)
def test_the_sources_are_those_of_the_task(task, references, sources):
    row = Row(TWO, references, "c", (), task)
    assert said(row, unsupported=(missing("1970", number=1),)) == [f"1970 is not in {sources}"]
    [text] = said(row, contradicted=(replace(LIKELY, source="reference", number=1),))
    assert text == 'contradicts the reference "She stayed." (0.97)'


def test_long_premises_are_cut_unless_all_is_asked_for():
    premise = "word\n" * 50
    [finding] = findings_of(SUMMARY, RowScore(0.5, contradicted=(replace(LIKELY, premise=premise),)))
    assert finding.in_words() == f'contradicts the context "{("word " * 50)[:99]}…" (0.97)'
    assert finding.in_words(None) == f'contradicts the context "{("word " * 50).strip()}" (0.97)'
    assert len(brief_findings([finding] * 3, 80)) <= 80
    assert brief_findings([finding] * 3, 80).endswith("; and 2 more")


def test_many_words_are_counted():
    words = [f"{number} km" for number in range(20, 30)]
    [text] = said(unsupported=(missing(*words),))
    assert text == "sentence 2: 20 km, 21 km, 22 km, 23 km and 6 more are not in the context"
    assert listed([]) == ""
    assert listed(["a"]) == "a"


@pytest.mark.parametrize(
    ("words", "sentence", "premise", "expected"),
    [
        (("ninety",), "It took ninety days.", "Rain fell. It took nineteen days. All was well.", "nineteen"),
        (("March",), "They met in March in Rome.", "They met in late May in Rome.", "late May"),
        (("not",), "They did not meet in Rome.", "They did meet in Rome.", ""),  # Nothing stands in its place.
        (("ninety",), "It took ninety days.", "Nobody came to the fair.", ""),
        (("Anna",), "Anna left for Rome.", "Berg left for Oslo.", "Berg"),
        (("ninety",), "It took ninety days.", "It took, as all had feared from the start, some days.", ""),
        (("555-0143",), "Call 555-0143 for a table.", "Call 555-0134 for a table.", "555-0134"),
        (("x",), "x", "", ""),
    ],
)
def test_what_the_premise_has_in_place_of_the_wrong_words(words, sentence, premise, expected):
    assert words_instead(words, sentence, premise) == expected


# Where it stands


def marked(text, *words, sentence=None, number=1):
    finding = Finding("unsupported", missing(*words, sentence=sentence or text, number=number), words)
    return "".join(f"[{part}]" if wrong else part for part, wrong in marked_parts(text, [finding]))


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("It cost 25 dollars.", ("25 dollars",), "It cost [25 dollars]."),
        ("It cost **25** dollars.", ("25 dollars",), "It cost **[25** dollars]."),
        ("Rome, and Rome again.", ("Rome",), "[Rome], and [Rome] again."),
        ("It was 15, 2.5 and 5.", ("5",), "It was 15, 2.5 and [5]."),
        ("It was 5,000 or 5.", ("5",), "It was 5,000 or [5]."),
        ("Romeo in Rome.", ("Rome",), "Romeo in [Rome]."),
        ("€5 (or $5).", ("$5",), "€5 (or [$5])."),
        ("A+ or A.", ("A+", "Z"), "[A+] or A."),
        ("Rome.", (), "Rome."),
    ],
)
def test_wrong_words_are_marked_and_no_others(text, words, expected):
    assert marked(text, *words) == expected


def test_words_are_looked_for_in_their_sentence_alone():
    text = "It cost 5 euros.  The   fee is *5* euros. It is 5 euros."
    expected = "It cost 5 euros.  The   fee is *[5* euros]. It is 5 euros."
    assert marked(text, "5 euros", sentence="The fee is *5* euros.", number=2) == expected
    assert marked(text, "5 euros", sentence="Another sentence.") == text


def test_without_words_the_sentence_is_marked_unless_it_is_all():
    assert marked(SUMMARY.candidate, sentence=TWO) == f"{ONE} [{TWO}]"
    assert marked(TWO) == TWO


def test_a_long_loop_is_read_in_linear_time():
    text = "a 5 " * 50_000
    assert marked(text, "5 a", sentence="a  5 " * 40_000 + "b") == text


def test_marked_words_are_escaped():
    finding = Finding("unsupported", missing("<b>", sentence="A <b> & c."), ("<b>",))
    assert marked_page("A <b> & c.", [finding]) == "A <mark>&lt;b&gt;</mark> &amp; c."


# Explanations and notebooks

FOUND = {
    "contradicted": RowScore(0.9, contradicted=(PRICE,)),
    "unsupported": RowScore(0.8, unsupported=(missing("1970"),)),
    "": RowScore(0.1),
}


def test_the_label_of_a_row_is_what_was_found_first():
    assert [label_of(found) for found in FOUND.values()] == list(FOUND)
    assert label_of(RowScore(0, contradicted=(PRICE,), unsupported=(missing("1970"),))) == "contradicted"


def test_explanations_tell_the_words():
    told = Explanation(SUMMARY, FOUND["unsupported"])
    assert str(told).splitlines()[1:] == [f"  unsupported: {TWO}", "      1970 is not in the context"]
    assert f"{ONE} Anna Berg left in <mark>1970</mark>." in told._repr_html_()
    assert "<small>1970 is not in the context</small>" in told._repr_html_()


def test_a_notebook_shows_first_what_was_found():
    scores = (*[FOUND[""]] * 12, FOUND["unsupported"], FOUND["contradicted"])
    result = MarsResult((SUMMARY,) * len(scores), scores, SimpleNamespace(__str__=str), ())
    page = result._repr_html_()
    assert page.index("<b>0.900</b>") < page.index("<b>0.800</b>") < page.index("<b>0.100</b>")
    assert "Those with findings, then the lowest" in page
    plain = replace(result, row_scores=(FOUND[""],) * len(scores))._repr_html_()
    assert "<p>The lowest 10; 4 more.</p>" in plain


# The list of rows


def summary_of(*scores):
    return read(Summary(), *((SUMMARY, score) for score in scores))


def test_the_list_has_what_was_found_then_the_lowest_and_highest():
    scores = [replace(score, score=score.score + step / 100) for step in range(9) for score in FOUND.values()]
    shown = summary_of(*scores).shown
    assert list(shown) == ["contradicted", "unsupported", ""]
    assert [row.score.score for row in shown["contradicted"]] == pytest.approx(
        [0.9 + step / 100 for step in range(6)]
    )
    assert [row.score.score for row in shown[""]] == pytest.approx([0.1, 0.11, 0.12, 0.16, 0.17, 0.18])
    assert all(label_of(row.score) == label for label, rows in shown.items() for row in rows)


@pytest.mark.parametrize("count", [0, 1, 2 * SHOWN, 2 * SHOWN + 1])
def test_no_row_is_listed_twice(count):
    shown = summary_of(*[FOUND[""]] * count, *FOUND.values()).shown
    numbers = [row.number for rows in shown.values() for row in rows]
    assert len(set(numbers)) == len(numbers) == min(count + 1, 2 * SHOWN) + 2


@pytest.fixture
def score(tmp_path, word_models, run, monkeypatch):
    """Runs ``mars score`` over as many rows as there are labels of what is found in them."""

    def run_command(labels, *options):
        from_dict, rows = RowScore.from_dict, {f"{ONE} {TWO} {row}": label for row, label in enumerate(labels)}

        def changed(values, *others):
            label = rows[values["references"][0]["reference"]]
            found = FOUND[label]
            changes = {"contradicted": found.contradicted, "unsupported": found.unsupported}
            return replace(from_dict(values, *others), **changes)

        monkeypatch.setattr(RowScore, "from_dict", changed)
        path = jsonl.write(
            tmp_path / "rows.jsonl",
            [{"prediction": f"{ONE} {TWO}", "reference": row, "context": "c", "task": "summary"} for row in rows],
        )
        return run("score", path, "--task-column", "task", *word_recall.OPTIONS, *options)

    return run_command


def test_the_console_tells_what_was_found(score):
    lines = score(["", "unsupported", "contradicted"])[1].splitlines()
    start = lines.index("line  score   candidate")
    assert [line[6:].lstrip("0123456789. ") for line in lines[start + 1 :]] == [
        f"[contradicted] {ONE} {TWO}",
        PRICE_DIFFERS,
        f"[unsupported] {ONE} {TWO}",
        YEAR_LACKS,
        f"{ONE} {TWO}",
    ]


@pytest.mark.parametrize("label", ["contradicted", "unsupported"])
def test_the_console_counts_what_it_does_not_show(score, label):
    out = score([label] * 8 + [""])[1]
    assert out.count(f"[{label}] ") == 6
    assert f"      and 2 more {label} rows\n" in out
    assert "candidate (findings first, then lowest and highest)\n" in out
    assert f"      and 1 more {label} row\n" in score([label] * 7)[1]


def test_details_and_json(score):
    out = score(["unsupported", ""], "--detailed")[1]
    assert "[unsupported] " in out
    assert f"      {YEAR_LACKS}\n" in out
    assert "findings" not in json.loads(score(["unsupported"], "--json")[1])


# Gates


def test_a_share_of_unsupported_rows_fails(score):
    code, _, error = score(["unsupported", "unsupported", "contradicted"], "--fail-unsupported", 0.5)
    assert code == 3
    assert "2 of 3 rows are unsupported:\n" in error
    assert error.count(YEAR_LACKS) == 2
    assert score(["unsupported", "contradicted"], "--fail-unsupported", 0.5)[0] == 0


def test_a_sentence_that_is_contradicted_as_well_fails_both_gates():
    both = RowScore(0.5, contradicted=(PRICE,), unsupported=(PRICE_LACKS,))
    gates = gates_of("--fail-contradicted", "--fail-unsupported")
    assert [line for gate in gates for line in read(gate, (SUMMARY, both)).failures()] == [
        "1 of 1 rows is contradicted:",
        f"  line 1: {ONE}",
        f"    {PRICE_DIFFERS}",
        "1 of 1 rows is unsupported:",
        f"  line 1: {ONE}",
        "    sentence 1: 25 dollars is not in the context",
    ]


@pytest.mark.parametrize(
    ("row", "result", "reason"),
    [
        (SUMMARY, RowScore(0.5), ""),
        (replace(SUMMARY, task="data"), RowScore(0.5, unchecked="record"), ""),
        (SUMMARY, RowScore(0.5, unchecked="this preset cannot judge summaries by their context"), ""),
        (replace(SUMMARY, task="dialogue"), RowScore(0.5, unchecked="dialogue"), "1 dialogue"),
        (replace(SUMMARY, task="text"), RowScore(0.5), "1 row whose task is text; --task summary checks"),
        (replace(SUMMARY, context=""), RowScore(0.5, unchecked="no context"), "1 row without a context"),
        (SUMMARY, RowScore(0.5, notices=frozenset({Notice.NOT_ENGLISH})), "1 row that is not English"),
        (
            Row("Der Film hat uns allen sehr gut gefallen.", ("Der Film war gut.",), "name: Film", task="data"),
            RowScore(0.5, unchecked="record"),
            "1 row that is not English",
        ),
        (SUMMARY, RowScore(0.0, unchecked="blank candidate"), "1 blank candidate"),
        (SUMMARY, RowScore(0.0, unchecked="nothing is stated"), "1 row that states nothing"),
    ],
)
def test_a_gate_that_cannot_check_a_row_says_so(row, result, reason):
    [gate] = gates_of("--fail-unsupported")
    told = read(gate, (row, result)).unchecked()
    assert told.startswith(f"no row can be checked for unsupported sentences: {reason}" if reason else "")
    assert bool(told) == bool(reason)


# judge


def test_judge_tells_what_was_found_and_only_contradictions_fail(word_models, monkeypatch):
    score = MarsScorer.score

    def found(verdicts):
        def changed(self, *columns, **options):
            result = score(self, *columns, **options)
            row = replace(result.row_scores[0], **verdicts)
            explanation = replace(result.explanations[0], score=row)
            return replace(result, row_scores=(row,), explanations=(explanation,))

        monkeypatch.setattr(MarsScorer, "score", changed)
        settings = {**word_recall.SETTINGS, "use_context": True, "context_weight": 0.5, "task": "summary"}
        return mars_score.judge(SUMMARY.candidate, "Tickets", "Tickets cost 20 dollars.", **settings)

    judged = found({"unsupported": (missing("1970"),)})
    assert judged["reason"].endswith(f"; {YEAR_LACKS}")
    assert judged["passed"] is None
    assert judged["metadata"]["unsupported"][0]["words"] == ["1970"]
    judged = found({"unsupported": (missing("1970"),), "contradicted": (PRICE,)})
    assert judged["reason"].endswith(f"{PRICE_DIFFERS}; {YEAR_LACKS}")
    assert judged["passed"] is False
    assert json.loads(json.dumps(judged)) == judged
