"""The rated sets from made-up files in their sources' forms: items, refusals, parts, checksums, the command."""

import csv
import io
import json
import os
import pickle
import threading
from collections import OrderedDict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from mars_score.meta.sets import read_rated_set
from research.ratings import __main__ as ratings
from research.ratings.forms import detokenize
from research.ratings.sources import SOURCES
from tests import ROOT


def table(rows, columns=None):
    """Text of a CSV file with rows as dicts."""
    file = io.StringIO()
    writer = csv.DictWriter(file, columns or list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def of_bartscore(scores):
    """A file of summaries, as BARTScore's repository has them: two systems, one document."""
    summaries = {name: {"sys_summ": f"A dog {name} .", "scores": scores} for name in ("barks.txt", "sleeps.txt")}
    entry = {"src": "A dog -LRB- Rex -RRB- barked all night .", "ref_summ": "Rex barked .", "sys_summs": summaries}
    return pickle.dumps({"d-7": entry})


NEWSROOM = [
    {
        "ArticleID": "7",
        "ArticleTitle": "Dogs &amp; nights",
        "ArticleText": "A dog barked.</p><p>All night.",
        "System": "lede3",
        "SystemSummary": "A dog barks.txt .",
        **{f"{aspect}Rating": rating for aspect in ("Coherence", "Fluency", "Informativeness", "Relevance")},
    }
    for rating in (2, 4)
]
QUALITY = [
    {
        "_worker_id": worker,
        "mr": "name[Blue Hut], eatType[pub], customer rating[high]",
        **{f"sys{i}": f"s{i}" for i in range(1, 6)},
        **{f"ref{i}": f"Blue Hut is a pub {i} ." for i in range(1, 6)},
        **{f"{column}{i}": 10 * i + bonus for i in range(1, 6) for column in ("quality", "natur")},
        **{f"check{i}": check for i in range(1, 6)},
    }
    for worker, bonus, check in (("w1", 0, "missing"), ("w2", 40, "added\nmissing"))
]
HUSE = [
    {
        "Input.TYPE0": kind,
        **{f"Input.CTX{i}": f"dog {i} -lrb- rex -rrb- barked ." for i in range(25)},
        **{f"Input.OUT{i}": f"{headline} {i}" for i in range(25)},
        **{f"Answer.{i}": answer for i in range(25)},
    }
    for kind, headline, answer in (
        *(("SUM", "dog barks", "Rare"), ("SUM", "dog barks", "Very Typical")),
        *(("HUMAN_SUM", "rex is loud", "Typical"), ("OTHER", "cat", "Average")),
    )
]
ASPECTS = ("fluency", "clarity", "conciseness", "relevance", "consistency", "answerability", "answer_consistency")
REPLY = {"Understandable": [1, 1], "Natural": [3, 2], "Maintains Context": [1, 3], "Engaging": [1, 1]}
REPLY |= {"Uses Knowledge": [0, 1], "Overall": [2, 5]}
ASSET = {"asset.test.orig": "One.\nThe dog (Rex) barked loudly.\n"}
ASSET |= {f"asset.test.simp.{i}": f"One.\nRex barked{'' if i else ' a lot'}.\n" for i in range(10)}
WEBNLG = {
    f"{team}/{name}": text
    for team in [name.removesuffix("/primary.en") for name in SOURCES["webnlg20"].files if name.endswith(".en")]
    for name, text in {
        "primary.en": "x\nRex lives in Oslo.\n",
        "primary.json": json.dumps(
            {
                "2": {
                    worker: dict.fromkeys(("Correctness", "DataCoverage", "Fluency", "Relevance"), value)
                    | {"TextStructure": value, "feedback": "."}
                    for worker, value in {"A": 80, "B": 90}.items()
                }
            }
        ),
    }.items()
}
WEBNLG["rdf-to-text-generation-test-data-with-refs-en.xml"] = (
    '<benchmark><entries><entry eid="Id2"><modifiedtripleset><mtriple>Rex_the_Dog | city | Oslo</mtriple>'
    "</modifiedtripleset><lex>Rex is in Oslo.</lex><lex>Rex is in Oslo.</lex></entry></entries></benchmark>"
)
SYSTEMS = ("bert_ranker", "dialogGPT", "transformer_generator", "transformer_ranker")
GRADE = {
    f"convai2/{system}/human_{part}.txt": f"{text}\n"
    for system in SYSTEMS
    for part, text in {"ctx": "hi !|||how are you ?", "hyp": "fine .", "ref": "i 'm well ."}.items()
}
GRADE["human_judgement.json"] = json.dumps(
    [
        {"Dataset": "convai2", "DialogModel": system, "Context": "hi !|||how are you ?", "Response": "fine ."}
        | {"HumanScores": "[2, 5]"}
        for system in SYSTEMS
    ]
)
D2T = {"src": "inform(name='rex')", "sys_summ": "It is rex .", "ref_summs": ["Rex .", "Rex .", " "]}
D2T["scores"] = OrderedDict(informativeness=np.float64(5), naturalness=4.0, quality=6)
STORY = {"gen": {"gpt": {"text": "she ran .", "score": [1, 4]}}}
STORY |= {"prompt": "[FEMALE] saw [MALE] .", "gold_response": "they ran . i slept !"}
ANSWERS = {f"answer_{name}": "In  Oslo." for name in ("fid", "gpt35", "chatgpt", "gpt4", "newbing")}
ANSWERS |= {f"judge_{name}": name == "fid" for name in ("fid", "gpt35", "chatgpt", "gpt4", "newbing")}
ANSWERS |= {"question": "where", "golden_answer": "Oslo/ Norway"}
EVOUNA = json.dumps([{**ANSWERS, "improper": improper} for improper in (False, True)])
VOTES = [dict.fromkeys(("consistency", "relevance", "fluency", "coherence"), rating) for rating in (1, 2)]
TURNS = [
    {"id": "1", "dialogue": "| A: hi | B: bye :)", "summary": summary, "annotations": VOTES, "model_id": model}
    for model, summary in (("B", "a says hi ."), ("A", "they greet ."))
]
TOPICAL = [
    {"source": "hi \n yo \n\n", "context": "fact", "system_id": system, "system_output": "it 's me . "}
    | {"scores": {"naturalness": 2.0, "overall": 4.33333}}
    for system in ("Original Ground Truth", "Nucleus Decoding (p = 0.3)")
]
PERSONA = {"context": "hi !\nyo\n", "responses": [{"response": "x\n", "model": "Original Ground Truth"}]}
PERSONA["responses"].append({"response": "ok .\n", "model": "KV-MemNN", **REPLY})
PLUS = [{"id": f"9{kind}{i}", "text": f"{kind}{i}."} for kind in "par" for i in range(5)]
PLUS = {"data": [{"paragraphs": [{"context": "Speaker A: Hi.\n\nSpeaker B: Yes .", "responses": PLUS}]}]}
QUESTION = {"source": "SQuAD_T5_x", "prediction": "Who ?", **dict.fromkeys(ASPECTS, 3.0)}
QUESTIONS = [QUESTION, {**QUESTION, "source": "SQuAD_reference"}]
FEEDBACK = {"question": "Where?", "gold": "Oslo ", "preference": [0, 1, 2, 1, 0, 2]}
FEEDBACK |= {"passages": [["Rex", "Rex\n\nRex is a dog.", "He barks."], ["Rex", "He lives."]]}
FEEDBACK |= {f"prediction {i}": f"In {i}." for i in range(1, 5)}
ASAG = {"id": "1.1", "question": "Why?", "desired_answer": "So.", "student_answer": "Because", "score_me": 4}
ASAG |= {"score_other": 3, "score_avg": 3.5}
HUMAN_RATINGS = [
    {"original": "The dog( Rex) barked loudly.", "simplification": "Rex barked.", "original_sentence_id": 1}
    | {"aspect": aspect, "worker_id": 1, "rating": rating}
    for aspect in ("meaning", "fluency", "simplicity")
    for rating in (0, 90)
]
DA = {"sent_id": 2, "sys_name": "Hybrid", "fluency": 10, "meaning": 20, "simplicity": 60.0}
PAIR = {"sent_id": 2, "sys_name": "Hybrid", "orig_sent": "The dog (Rex) barked loudly.", "simp_sent": "Rex."}


def item(context=None, references=None, candidate=None, human=None, **others):
    """The fields of an item that are named."""
    named = {"context": context, "references": references, "candidate": candidate, "human": human, **others}
    return {name: value for name, value in named.items() if value is not None}


VOTED = {name.lower().replace(" ", "_"): votes for name, votes in REPLY.items()}
SUMMARY_ASPECTS = ("coherence", "fluency", "informativeness", "relevance")
MADE_UP = [{"id": "5a", "passage": "Rex.", "reference": "Who?", "answer": "Rex", "questions": QUESTIONS}]

# Files of each set, and what its first item must hold.
SETS = {
    "newsroom": (
        {"newsroom-human-eval.csv": table(NEWSROOM), "data.pkl": of_bartscore({})},
        item("Dogs & nights\nA dog barked.\nAll night.", ["Rex barked."], "A dog barks.txt.", 3.0)
        | item(id="7-lede3", group="7", individual={key: [2, 4] for key in SUMMARY_ASPECTS}),
    ),
    "summeval": (
        {"data.pkl": of_bartscore(dict.fromkeys(("coherence", "consistency", "fluency", "relevance", "x"), 4))},
        item("A dog (Rex) barked all night.", human=4.0, id="d-7-barks.txt", group="d-7"),
    ),
    "realsumm": (
        {"data.pkl": of_bartscore({"litepyramid_recall": 0.123456})},
        item(references=["Rex barked."], system="barks", ratings={"litepyramid_recall": 0.1235}),
    ),
    "dialsummeval": (
        {"human_judgment.jsonl": "".join(json.dumps(turn) + "\n" for turn in TURNS)},
        item("A: hi\nB: bye :)", ["they greet."], "a says hi.", 1.5, id="1-B", system="LONGEST_3"),
    ),
    "huse_gigaword": (
        {"summarization_raw_outputs.csv": table(HUSE)},
        item("dog 0 (rex) barked.", ["rex is loud 0"], "dog barks 0", 3.0, system="Seq2Seq-SUM"),
    ),
    "union_roc": (
        {
            "ant_data_all.txt": "1 ||| [MALE] saw a dog . it barked !he did n't run . ||| 0 1 1 0 4 5 2\n",
            "reference.txt": "x . y .\n[MALE] saw a dog . [NEUTRAL] 's dog . \n",
        },
        item("Tom saw a dog.", ["Sam's dog."], "It barked! He didn't run.", 0.2857, id="1")
        | {
            "ratings": {"reasonable": 0.2857, "err_repeated_plot": 0.2857, "err_poor_coherence": 0.1429}
            | {"err_conflicting_logic": 0.0, "err_chaotic_scene": 0.1429, "err_other": 0.1429}
        },
    ),
    "openmeva_roc": (
        {"mags_roc.json": json.dumps({"12": STORY})},
        item("Anna saw Tom.", ["They ran. I slept!"], "She ran.", 2.5, id="12-gpt"),
    ),
    "qa_feedback": (
        {"dev_feedback.json": json.dumps([FEEDBACK])},
        item("Rex Rex is a dog. He barks.\nRex: He lives.\nQuestion: Where?", ["Oslo"], "In 1.", 0.5, id="0-1"),
    ),
    "evouna_nq": ({"NQ.json": EVOUNA}, item("where", ["Oslo", "Norway"], "In Oslo.", 1.0, system="fid")),
    "evouna_tq": ({"TQ.json": EVOUNA}, {"ratings": {"correct": 1.0}}),
    "mohler_asag": (
        {"mohler_dataset_edited.csv": table([ASAG])},
        item(candidate="Because", human=3.5, id="0", group="1.1", individual={"grade": [4, 3]}),
    ),
    "usr_topicalchat": (
        {"topical_chat.json": json.dumps(TOPICAL)},
        item("hi\nyo", ["it's me."], human=4.3333, system="Nucleus Decoding (p = 0.3)"),
    ),
    "usr_personachat": (
        {"pc_usr_data.json": json.dumps([PERSONA])},
        item("hi!\nyo", ["x"], "ok.", 3.5, id="0-kvmemnn", individual=VOTED),
    ),
    "grade_convai2": (
        GRADE,
        item(
            "hi!\nhow are you?", ["i'm well."], "fine.", 3.5, id="bert_ranker-0", individual={"coherence": [2, 5]}
        ),
    ),
    "dailydialogpp": (
        {"test-v1.0.json": json.dumps(PLUS)},
        item("Hi.\nYes.", ["p1.", "p3."], "p0.", 1.0, system="positive"),
    ),
    "asset_human": (
        {"human_ratings.csv": table(HUMAN_RATINGS), **ASSET},
        item(references=["Rex barked a lot.", "Rex barked."], candidate="Rex barked.", human=45.0),
    ),
    "simplicity_da": (
        {"simplicity_DA.csv": table([DA]), "simplicity_DA_ratings.csv": table([PAIR]), **ASSET},
        item(references=["Rex barked a lot.", "Rex barked."], candidate="Rex.", human=30.0, id="2-Hybrid"),
    ),
    "bagel": (
        {"data.pkl": pickle.dumps({3: D2T})},
        item("inform(name='rex')", ["Rex."], "It is rex.", 5.0, id="3"),
    ),
    "e2e": (
        {
            "quality.csv": table(QUALITY),
            "naturalness.csv": table(QUALITY),
            "testset_w_refs.csv": f'mr,ref\n"{QUALITY[0]["mr"]}",A pub.\n',
        },
        item("inform(name='Blue Hut',eat_type='pub',customer_rating='high')", ["A pub."], "Blue Hut is a pub 1.")
        | item(human=-1.4142, system="s1")
        | {
            "ratings": {"quality": 30.0, "quality_z": -1.4142, "nothing_missing": 0.0, "nothing_added": 0.5}
            | {"naturalness": 30.0, "naturalness_z": -1.4142}
        },
    ),
    "webnlg20": (
        WEBNLG,
        item("Rex the Dog | city | Oslo", ["Rex is in Oslo."], "Rex lives in Oslo.", 85.0)
        | {"id": "2-Amazon_AI_(Shanghai)"},
    ),
    "qgeval": (
        {"instances.json": json.dumps(MADE_UP)},
        item("Rex.\nAnswer: Rex", ["Who?"], "Who ?", 3.0, id="5a-T5_x", group="5a"),
    ),
}


def write(folder, name, files):
    """Write the files of a set as downloads; return their paths."""
    paths = {}
    for file, content in files.items():
        paths[file] = folder / SOURCES[name].folder / file
        paths[file].parent.mkdir(parents=True, exist_ok=True)
        paths[file].write_bytes(content if isinstance(content, bytes) else content.encode())
    return paths


def test_every_source_has_a_made_up_set():
    alike = {"sfhot": "bagel", "sfres": "bagel"}
    alike |= dict.fromkeys(("grade_dailydialog", "grade_empathetic"), "grade_convai2")
    assert {alike.get(name, name) for name in SOURCES} == set(SETS)
    assert all(set(files) == set(SOURCES[name].files) for name, (files, _) in SETS.items())


# Without references, improper questions and other rows, which are no items.
COUNTS = {"evouna_nq": 5, "qa_feedback": 4, "dailydialogpp": 13, "e2e": 5}
COUNTS |= {"webnlg20": 16, "qgeval": 1, "huse_gigaword": 25}


@pytest.mark.parametrize("name", SETS)
def test_items_are_read(name, tmp_path):
    files, expected = SETS[name]
    items = list(SOURCES[name].reader(write(tmp_path, name, files)))
    assert {key: items[0][key] for key in expected} == expected
    assert len(items) == COUNTS.get(name, len(items))


@pytest.mark.parametrize("missing", ["null", '"nan"'])
def test_an_answer_that_nobody_judged_is_no_item(missing, tmp_path):
    changed = EVOUNA.replace('"judge_fid": true', f'"judge_fid": {missing}')
    found = SOURCES["evouna_nq"].reader(write(tmp_path, "evouna_nq", {"NQ.json": changed}))
    assert [item["system"] for item in found] == ["gpt35", "chatgpt", "gpt4", "newbing"]


def test_comparisons_count_as_wins_and_ties_as_half(tmp_path):
    items = SOURCES["qa_feedback"].reader(write(tmp_path, "qa_feedback", SETS["qa_feedback"][0]))
    assert [item["human"] for item in items] == [0.5, 0.6667, 0.0, 0.8333]


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        ("evouna_nq", '"judge_fid": true', '"judge_fid": 1', "element 1: 'judge_fid' must be of type bool"),
        ("evouna_nq", '"question"', '"query"', "element 1: no 'question'"),
        ("evouna_nq", "[{", "{", "NQ.json: is not JSON"),
        ("qgeval", '"clarity": 3.0', '"clarity": NaN', "must be a number, got nan"),
        ("usr_personachat", "[2, 5]", "[2, true]", "'Overall': a rating must be a number, got True"),
        ("usr_personachat", "[2, 5]", "[]", "'Overall' is empty"),
        ("usr_topicalchat", "Original Ground Truth", "Truth", "no 'Original Ground Truth'"),
        ("mohler_asag", "score_avg", "score", "no column 'score_avg', but id, question"),
        ("mohler_asag", "3.5", "", "row 1: 'score_avg': a rating must be a number, got ''"),
        ("mohler_asag", ",3.5", "", "row 1: has fewer cells than the header"),
        ("union_roc", "1 |||", "2 |||", "line 1: must be 'number of a reference"),
        ("union_roc", "4 5 2", "4 5 9", "line 1: the marks must be 0 to 5, got '0 1 1 0 4 5 9'"),
        ("grade_convai2", "i 'm well .\n", "i 'm well .\nmore\n", "2 lines, but .*human_ctx.txt has 1"),
        ("grade_convai2", "fine .\n", "bad .\n", "line 1: .* has no ratings of this reply"),
        ("asset_human", "One.\nRex barked.\n", "Rex barked.\n", "1 lines, but .*asset.test.orig has 2"),
        ("asset_human", "The dog (Rex) barked", "A cat", "line 2 of .* is another sentence"),
        ("simplicity_da", "Hybrid,The", "ACCESS,The", "lacks sentence 2 of Hybrid"),
        ("huse_gigaword", "Rare", "Odd", "must be one of Invalid, .*; got 'Odd'"),
        ("dailydialogpp", "9p0", "9x0", "paragraph 1: the id '9x0' does not say the kind"),
        ("dialsummeval", '"model_id": "A"', '"model_id": "C"', "no '1'"),
        ("e2e", 'ref\n"name[Blue', 'ref\n"name[Green', "input 'name.Blue Hut.*: no 'name"),
        ("webnlg20", '"2"', '"3"', "sample 3: .* lacks it"),
        ("webnlg20", "</entries>", "", "is not XML"),
        ("qa_feedback", "[0, 1, 2", "[0, 1, 3", "element 1: a preference must be 0, 1 or 2, got 3"),
        ("newsroom", "A dog barks", "A cat sat", "no summary of article 7 is in"),
    ],
)
def test_another_form_is_refused(name, old, new, fault, tmp_path):
    """In the last file that has the text."""
    files = SETS[name][0]
    file = [file for file, content in files.items() if isinstance(content, str) and old in content][-1]
    paths = write(tmp_path, name, {**files, file: files[file].replace(old, new)})
    with pytest.raises(ValueError, match=fault) as error:
        list(SOURCES[name].reader(paths))
    assert str(tmp_path) in str(error.value)


class Command:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("echo",)


@pytest.mark.parametrize("content", [pickle.dumps({1: Command()}), b"no pickle", pickle.dumps([1])])
def test_a_pickle_holds_plain_data_only(content, tmp_path):
    with pytest.raises(ValueError, match=r"data\.pkl: (is not a pickle of plain data|must hold a dict)"):
        list(SOURCES["bagel"].reader(write(tmp_path, "bagel", {"data.pkl": content})))


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("it 's -LRB- so -RRB- , is n't it ?", "it's (so), isn't it?"),
        ("he said `` yes , '' and \" no \" .", 'he said "yes," and "no".'),
        ("It ' s 5 % of $ 60 :)", "It's 5% of $60 :)"),
        ('6 " long', '6 " long'),
    ],
)
def test_tokens_are_joined(tokens, text):
    assert detokenize(tokens) == text


def items(*contexts):
    return [item(one, None, "c", id=f"{n}-x", group=str(n)) for n, one in enumerate(contexts)]


def test_groups_go_to_their_parts_whatever_the_spacing():
    development = f"{ratings.fingerprint('A dog.')} {ratings.fingerprint('B')}=old"
    known = {"development": [development], "learned": ["0=2"]}
    parts = ratings.split("s", items("a  d o g", "b", "changed", "new"), known)
    assert {part: [(item["id"], item["group"]) for item in found] for part, found in parts.items()} == {
        "development": [("s-0-x", "s-0"), ("s-old-x", "s-old")],
        "learned": [("s-2-x", "s-2")],
        "held_out": [("s-3-x", "s-3")],
    }


@pytest.mark.parametrize(
    ("contexts", "fault"), [(("a",), "1 of 2 groups .* not in the source"), ((), "no rated item")]
)
def test_a_source_without_a_known_group_is_refused(contexts, fault):
    known = {"development": [ratings.fingerprint("a"), ratings.fingerprint("b")]}
    with pytest.raises(ValueError, match=fault):
        ratings.split("s", items(*contexts), known)


def test_the_groups_are_those_of_sources_and_in_one_part_each():
    known = json.loads(ratings.GROUPS.read_text(encoding="utf-8"))
    assert set(known) == set(SOURCES) - {"grade_dailydialog", "grade_empathetic"}
    for parts in known.values():
        marks = [entry.partition("=")[0] for lines in parts.values() for line in lines for entry in line.split()]
        assert len(marks) == len(set(marks))
        assert all(len(mark) == 10 and int(mark, 16) >= 0 for mark in marks)


@pytest.fixture
def build(tmp_path, monkeypatch, capsys):
    """Runs the command for some sets, with one known group; returns exit code, standard output, standard error."""
    known = {"grade_convai2": {"development": [ratings.fingerprint("hi!\nhow are you?")]}}
    monkeypatch.setattr(ratings, "GROUPS", tmp_path / "groups.json")
    ratings.GROUPS.write_text(json.dumps(known), encoding="utf-8")

    def run_command(*names, download=False):
        source = [] if download else ["--from", str(tmp_path / "downloads")]
        return ratings.main([str(tmp_path / "out"), *source, "--only", *names]), *capsys.readouterr()

    return run_command


def test_the_command_builds_sets_from_downloads(build, tmp_path):
    for name in ("grade_convai2", "openmeva_roc"):
        write(tmp_path / "downloads", name, SETS[name][0])
    code, printed, errors = build("grade_convai2", "openmeva_roc", "qgeval")
    assert code == 1
    assert printed.splitlines() == [
        "grade_convai2: built: development 4 items in 1 groups (licence: none stated)",
        "openmeva_roc: built: held out 1 items in 1 groups (licence: none stated)",
    ]
    assert errors.startswith("qgeval: not built: ")
    assert "instances.json: there is no such file; it is from https://" in errors
    out = tmp_path / "out"
    data = read_rated_set(out / "development" / "grade_convai2.jsonl", task="dialogue")
    assert (data.ratings, len(data.single_ratings), set(data.systems)) == ([3.5] * 4, 4, {*SYSTEMS})
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.json*")) == [
        *("checksums.json", "development/grade_convai2.jsonl", "held_out/openmeva_roc.jsonl"),
    ]


def test_a_file_that_changed_is_refused(build, tmp_path):
    path = write(tmp_path / "downloads", "openmeva_roc", SETS["openmeva_roc"][0])["mags_roc.json"]
    assert build("openmeva_roc")[0] == 0
    path.write_text(path.read_text() + " ")
    code, _, errors = build("openmeva_roc")
    assert (code, "its SHA-256 is" in errors) == (1, True)
    (tmp_path / "out" / "checksums.json").unlink()
    assert build("openmeva_roc")[0] == 0


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of a folder, and the set evouna_nq with its file there."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/evouna/NQ.json"
        source = SOURCES["evouna_nq"]
        new = type(source)(source.reader, source.licence, source.folder, {"NQ.json": address})
        monkeypatch.setitem(SOURCES, "evouna_nq", new)
        monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
        yield server
        server.shutdown()


def test_files_are_downloaded_once(build, server, tmp_path):
    code, _, errors = build("evouna_nq", download=True)
    assert code == 1
    assert "404 File not found; get the file by hand as" in errors
    path = write(tmp_path / "site", "evouna_nq", SETS["evouna_nq"][0])["NQ.json"]
    assert build("evouna_nq", download=True)[0] == 0
    assert (tmp_path / "out" / "downloads" / "evouna" / "NQ.json").read_bytes() == path.read_bytes()
    path.unlink()
    assert build("evouna_nq", download=True)[0] == 0


def test_a_dead_network_is_one_sentence_with_the_remedy(build, server, tmp_path):
    server.shutdown()
    server.server_close()
    code, printed, errors = build("evouna_nq", "qgeval", download=True)
    assert (code, printed, len(errors.splitlines())) == (1, "", 1)
    assert errors.startswith("evouna_nq: not built: no network: ")
    assert "--from" in errors
    assert not list((tmp_path / "out").rglob("*.jsonl"))


def test_a_file_without_an_address_is_got_by_hand(build):
    code, _, errors = build("openmeva_roc", download=True)
    assert (code, "get it by hand from the folder data/mags_data" in errors) == (1, True)


def test_the_page_names_every_source_with_its_licence():
    page = (ROOT / "research" / "ratings.md").read_text(encoding="utf-8")
    rows = [row.split("|") for row in page.splitlines() if row.startswith("| ")]
    listed = {name.strip(): row[3].strip() for row in rows for name in row[1].split(",")}
    assert {name: listed.get(name) for name in SOURCES} == {name: one.licence for name, one in SOURCES.items()}
