"""Readers of the sources' files, one for each form; the forms are those that the sources document.

A reader takes the files of its source by name, and yields items without set names; see :func:`forms.make_item`.
"""

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any
from xml.etree import ElementTree

from research.ratings.forms import (
    REMEDY,
    Item,
    as_number,
    detokenize,
    dialogue,
    get,
    get_numbers,
    letters,
    make_item,
    one_line,
    parse_json,
    read_alike,
    read_lines,
    read_pickle,
    read_records,
    read_rows,
    read_text,
    short_hash,
)

Files = Mapping[str, Path]
Reader = Callable[[Files], Iterable[Item]]

_NAMES = {"[MALE]": "Tom", "[FEMALE]": "Anna", "[NEUTRAL]": "Sam"}
_PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def _story(text: str) -> str:
    """Write names for the placeholders of a story, and capitals at the start of its sentences."""
    for placeholder, name in _NAMES.items():
        text = text.replace(placeholder, name)
    text = re.sub(r"([!?])(?=[A-Za-z])", r"\1 ", text)
    return re.sub(r"(^|[.!?] )([a-z])", lambda found: found[1] + found[2].upper(), detokenize(text))


def _first_sentence(text: str, where: str) -> tuple[str, str]:
    """Split the first sentence of a tokenized story from the rest."""
    found = re.match(r"\s*(.+? [.!?]+)(?![^\s\w\[])\s*(.*)", text, re.DOTALL)
    if not found:
        raise ValueError(f"{where}: a story of one sentence, {text!r:.60}; {REMEDY}")
    return found[1], found[2]


# Summaries.


def _summaries(files: Files) -> Iterator[tuple[str, str, list[str], str, str, dict[str, Any]]]:
    """Yield where, document, references, system, summary and scores of each summary in a file of BARTScore."""
    path = files["data.pkl"]
    for document, entry in read_pickle(path).items():
        where = f"{path}, document {document!r}"
        references = get(entry, "ref_summs" if "ref_summs" in entry else "ref_summ", object, where)
        references = [references] if isinstance(references, str) else list(references)
        for system, summary in get(entry, "sys_summs", dict, where).items():
            place = f"{where}, system {system!r}"
            text, scores = get(summary, "sys_summ", str, place), get(summary, "scores", dict, place)
            yield place, document, references, system, text, scores


def bartscore_summaries(*aspects: str) -> Reader:
    """Make the reader of summaries of BARTScore's repository, with ratings of some aspects."""

    def read(files: Files) -> Iterator[Item]:
        sources = read_pickle(files["data.pkl"])
        for where, document, references, system, summary, scores in _summaries(files):
            texts = (
                detokenize(get(sources[document], "src", str, where)),
                map(detokenize, references),
                detokenize(summary),
            )
            ratings = {aspect: get(scores, aspect, int, where) for aspect in aspects}
            yield make_item((document, system), document, str(system).removesuffix(".txt"), texts, ratings)

    return read


def newsroom(files: Files) -> Iterator[Item]:
    """Read Newsroom's ratings; the references are in BARTScore's repository, found by the summaries."""
    references: dict[str, list[str]] = {}
    for _, _, originals, _, summary, _ in _summaries(files):
        references.setdefault(letters(html.unescape(summary)), originals)
    columns = {aspect: f"{aspect}Rating" for aspect in ("Coherence", "Fluency", "Informativeness", "Relevance")}
    path = files["newsroom-human-eval.csv"]
    needed = ("ArticleID", "ArticleTitle", "ArticleText", "System", "SystemSummary", *columns.values())
    summaries: dict[tuple[str, str], tuple[str, dict[str, str], dict[str, list[float]]]] = {}
    found: dict[str, list[str]] = {}
    for where, row in read_rows(path, *needed):
        summary = html.unescape(row["SystemSummary"])
        _, _, ratings = summaries.setdefault((row["ArticleID"], row["System"]), (where, row, defaultdict(list)))
        for aspect, column in columns.items():
            ratings[aspect.lower()].append(as_number(row[column], f"{where}: {column!r}"))
        if letters(summary) in references:
            found.setdefault(row["ArticleID"], references[letters(summary)])
    for (article, system), (where, row, ratings) in summaries.items():
        if article not in found:
            raise ValueError(f"{where}: no summary of article {article} is in {files['data.pkl']}; {REMEDY}")
        lines = html.unescape(f"{row['ArticleTitle']}</p><p>{row['ArticleText']}").split("</p><p>")
        context = "\n".join(line for line in map(one_line, lines) if line)
        texts = (context, map(detokenize, found[article]), detokenize(html.unescape(row["SystemSummary"])))
        yield make_item((article, system), article, system, texts, ratings)


def dialsummeval(files: Files) -> Iterator[Item]:
    """Read DialSummEval's ratings on the campus; model A is the reference."""
    names = "GOLD LONGEST_3 LEAD_3 PGN Transformer BART PEGASUS UniLM CODS ConvoSumm MV_BART PLM PNEP S_BART"
    systems = dict(zip("ABCDEFGHIJKLMN", names.split(), strict=True))
    path = files["human_judgment.jsonl"]
    records = [
        (f"{path}, line {number}", parse_json(line, f"{path}, line {number}", dict))
        for number, line in enumerate(read_lines(path), 1)
    ]
    key = {
        where: (get(record, "id", str, where), get(record, "model_id", str, where)) for where, record in records
    }
    gold = {key[where][0]: get(record, "summary", str, where) for where, record in records if key[where][1] == "A"}
    for where, record in records:
        group, model = key[where]
        if model == "A":
            continue
        votes = get(record, "annotations", list, where)
        aspects = ("consistency", "relevance", "fluency", "coherence")
        ratings = {aspect: [get(vote, aspect, int, where) for vote in votes] for aspect in aspects}
        turns = get(record, "dialogue", str, where).split("|")
        reference = detokenize(get(gold, group, str, f"{path}, the summaries of model A"))
        texts = (dialogue(turns), [reference], detokenize(get(record, "summary", str, where)))
        yield make_item((group, model), group, get(systems, model, str, where), texts, ratings)


def huse(files: Files) -> Iterator[Item]:
    """Read HUSE's headlines: how typical they are, 0 to 5, of the model's (SUM) and of people's (HUMAN_SUM)."""
    scale = ("Invalid", "Rare", "Specific", "Average", "Typical", "Very Typical")
    path = files["summarization_raw_outputs.csv"]
    parts = ("Input.CTX{}", "Input.OUT{}", "Answer.{}")
    columns = [tuple(part.format(number) for part in parts) for number in range(25)]
    texts: dict[str, dict[str, str]] = {"SUM": {}, "HUMAN_SUM": {}}
    ratings: dict[str, list[float]] = defaultdict(list)
    for where, row in read_rows(path, "Input.TYPE0", *(column for part in columns for column in part)):
        if row["Input.TYPE0"] not in texts:
            continue
        for context, output, answer in columns:
            if row[answer] not in scale:
                raise ValueError(f"{where}: {answer!r} must be one of {', '.join(scale)}; got {row[answer]!r:.60}")
            texts[row["Input.TYPE0"]][row[context]] = row[output]
            if row["Input.TYPE0"] == "SUM":
                ratings[row[context]].append(float(scale.index(row[answer])))
    for context, headline in texts["SUM"].items():
        reference = get(texts["HUMAN_SUM"], context, str, f"{path}, HUMAN_SUM")
        group = short_hash(context)
        parts_of_item = (detokenize(context), [detokenize(reference)], detokenize(headline))
        yield make_item((group,), group, "Seq2Seq-SUM", parts_of_item, {"typicality": fmean(ratings[context])})


# Stories.


def union(files: Files) -> Iterator[Item]:
    """Read UNION's ROC stories: the share of seven raters who marked no error, and those of each error."""
    errors = ("repeated_plot", "poor_coherence", "conflicting_logic", "chaotic_scene", "other")
    references = read_lines(files["reference.txt"])
    path = files["ant_data_all.txt"]
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}, line {number}"
        parts = [part.strip() for part in line.split("|||")]
        if len(parts) != 3 or not parts[0].isdecimal() or int(parts[0]) >= len(references):
            raise ValueError(f"{where}: must be 'number of a reference ||| story ||| ratings'; {REMEDY}")
        marks = [as_number(mark, where) for mark in parts[2].split()]
        if not marks or not set(marks) <= {0, 1, 2, 3, 4, 5}:
            raise ValueError(f"{where}: the marks must be 0 to 5, got {parts[2]!r:.60}; {REMEDY}")
        context, candidate = _first_sentence(parts[1], where)
        _, reference = _first_sentence(references[int(parts[0])], f"{files['reference.txt']}, line {parts[0]}")
        share = [marks.count(mark) / len(marks) for mark in range(6)]
        ratings = {"reasonable": share[0], **{f"err_{error}": share[i] for i, error in enumerate(errors, 1)}}
        texts = (_story(context), [_story(reference)], _story(candidate))
        yield make_item((parts[0],), short_hash(context), "unlabelled", texts, ratings, "reasonable")


def openmeva(files: Files) -> Iterator[Item]:
    """Read OpenMEVA's rated stories (MAGS) of five models."""
    path = files["mags_roc.json"]
    for story, entry in parse_json(read_text(path), str(path), dict).items():
        where = f"{path}, story {story}"
        context, gold = get(entry, "prompt", str, where), get(entry, "gold_response", str, where)
        for system, output in get(entry, "gen", dict, where).items():
            place = f"{where}, {system}"
            texts = (_story(context), [_story(gold)], _story(get(output, "text", str, place)))
            yield make_item(
                (story, system), story, system, texts, {"overall": fmean(get_numbers(output, "score", place))}
            )


# Answers.


def qa_feedback(files: Files) -> Iterator[Item]:
    """Read QA-Feedback: the share of comparisons with its three rivals that an answer wins; a tie counts half."""
    for group, (where, record) in enumerate(read_records(files["dev_feedback.json"])):
        lines = []
        for title, *sentences in get(record, "passages", list, where):
            text = one_line(" ".join(sentences))
            lines.append(text if sentences and sentences[0].startswith(title) else f"{title}: {text}")
        context = "\n".join([*lines, f"Question: {get(record, 'question', str, where)}"])
        wins = [0.0] * 4
        for pair, winner in zip(_PAIRS, get_numbers(record, "preference", where), strict=True):
            if winner not in (0, 1, 2):
                raise ValueError(f"{where}: a preference must be 0, 1 or 2, got {winner:g}; {REMEDY}")
            for place in pair:
                wins[place] += 0.5 if winner == 0 else float(pair[int(winner) - 1] == place)
        gold = one_line(get(record, "gold", str, where))
        for number, won in enumerate(wins, 1):
            answer = one_line(get(record, f"prediction {number}", str, where))
            yield make_item(
                (group, number), group, f"sample{number}", (context, [gold], answer), {"preference": won / 3}
            )


def evouna(name: str) -> Reader:
    """Make the reader of a file of EVOUNA; questions that are marked improper are left out."""

    def read(files: Files) -> Iterator[Item]:
        for where, record in read_records(files[name]):
            if get(record, "improper", bool, where):
                continue
            question = one_line(get(record, "question", str, where))
            golden = [one_line(answer) for answer in get(record, "golden_answer", str, where).split("/")]
            group = short_hash(question)
            for system in ("fid", "gpt35", "chatgpt", "gpt4", "newbing"):
                if record.get(f"judge_{system}") in (None, "nan"):  # not judged
                    continue
                correct = float(get(record, f"judge_{system}", bool, where))
                answer = one_line(get(record, f"answer_{system}", str, where))
                yield make_item((group, system), group, system, (question, golden, answer), {"correct": correct})

    return read


def mohler(files: Files) -> Iterator[Item]:
    """Read the student answers of Mohler et al. with both grades."""
    columns = ("id", "question", "desired_answer", "student_answer", "score_me", "score_other", "score_avg")
    for number, (where, row) in enumerate(read_rows(files["mohler_dataset_edited.csv"], *columns)):
        grades = [as_number(row[column], f"{where}: {column!r}") for column in columns[4:]]
        question, desired, answer = (one_line(row[column]) for column in columns[1:4])
        item = make_item((number,), row["id"], "student", (question, [desired], answer), {"grade": grades[2]})
        yield {**item, "individual": {"grade": grades[:2]}}


# Dialogue.


def topicalchat(files: Files) -> Iterator[Item]:
    """Read USR's replies in Topical-Chat from UniEval's copy; the original reply is the reference."""
    groups: dict[tuple[str, str], list[tuple[str, Any]]] = defaultdict(list)
    for where, record in read_records(files["topical_chat.json"]):
        groups[get(record, "source", str, where), get(record, "context", str, where)].append((where, record))
    for (source, fact), replies in groups.items():
        texts = {
            get(reply, "system_id", str, where): get(reply, "system_output", str, where)
            for where, reply in replies
        }
        reference = detokenize(get(texts, "Original Ground Truth", str, replies[0][0]))
        context, group = dialogue(source.split("\n")), short_hash(source + fact)
        for where, reply in replies:
            system = reply["system_id"]
            if system != "Original Ground Truth":
                scores = get(reply, "scores", dict, where)
                ratings = {aspect: get(scores, aspect, int, where) for aspect in scores}
                parts = (context, [reference], detokenize(texts[system]))
                yield make_item((group, letters(system)), group, system, parts, ratings, "overall")


def personachat(files: Files) -> Iterator[Item]:
    """Read USR's replies in PersonaChat; the original reply is the reference."""
    aspects = ("Understandable", "Natural", "Maintains Context", "Engaging", "Uses Knowledge", "Overall")
    for group, (where, record) in enumerate(read_records(files["pc_usr_data.json"])):
        context = dialogue(get(record, "context", str, where).split("\n"))
        replies = get(record, "responses", list, where)
        texts = {get(reply, "model", str, where): get(reply, "response", str, where) for reply in replies}
        reference = detokenize(get(texts, "Original Ground Truth", str, where))
        for reply in replies:
            system = reply["model"]
            if system != "Original Ground Truth":
                ratings = {
                    aspect.lower().replace(" ", "_"): get_numbers(reply, aspect, where) for aspect in aspects
                }
                parts = (context, [reference], detokenize(texts[system]))
                yield make_item((group, letters(system)), group, system, parts, ratings, "overall")


def grade(dataset: str, *systems: str) -> Reader:
    """Make the reader of a data set of GRADE; the references are in QuantiDCE's repository."""

    def read(files: Files) -> Iterator[Item]:
        path = files["human_judgement.json"]
        ratings: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
        for where, record in read_records(path):
            if get(record, "Dataset", str, where) == dataset:
                model, context, reply = (
                    get(record, key, str, where) for key in ("DialogModel", "Context", "Response")
                )
                scores = parse_json(get(record, "HumanScores", str, where), f"{where}: 'HumanScores'", list)
                found = [as_number(score, f"{where}: 'HumanScores'") for score in scores]
                ratings[model, letters(context), letters(reply)].append(found)
        for system in systems:
            paths = [files[f"{dataset}/{system}/human_{part}.txt"] for part in ("ctx", "hyp", "ref")]
            for number, (context, reply, reference) in enumerate(zip(*read_alike(paths), strict=True)):
                rated = ratings[system, letters(context), letters(reply)]
                if not rated:
                    raise ValueError(
                        f"{paths[1]}, line {number + 1}: {path} has no ratings of this reply; {REMEDY}"
                    )
                texts = (dialogue(context.split("|||")), [detokenize(reference)], detokenize(reply))
                group = short_hash(context)
                yield make_item((system, number), group, system, texts, {"coherence": rated.pop(0)})

    return read


def dailydialogpp(files: Files) -> Iterator[Item]:
    """Read DailyDialog++: fitting replies (1; two of five are references), adversarial and random ones (0)."""
    kinds = {"p": "positive", "a": "adversarial", "r": "random"}
    path = files["test-v1.0.json"]
    data = get(parse_json(read_text(path), str(path), dict), "data", list, str(path))
    paragraphs = [paragraph for topic in data for paragraph in get(topic, "paragraphs", list, str(path))]
    for number, paragraph in enumerate(paragraphs, 1):
        where = f"{path}, paragraph {number}"
        turns = re.split(r"\n+", get(paragraph, "context", str, where))
        context = dialogue(re.sub(r"^Speaker [AB]: ", "", turn) for turn in turns)
        replies: dict[str, list[str]] = {kind: [] for kind in kinds.values()}
        for reply in get(paragraph, "responses", list, where):
            found = re.fullmatch(r"\d+([par])\d+", get(reply, "id", str, where))
            if not found:
                raise ValueError(f"{where}: the id {reply['id']!r} does not say the kind of the reply; {REMEDY}")
            replies[kinds[found[1]]].append(one_line(get(reply, "text", str, where)))
        references, replies["positive"] = replies["positive"][1:4:2], replies["positive"][::2]
        group = short_hash(context)
        for kind, texts in replies.items():
            for place, text in enumerate(texts):
                ratings = {"fits": float(kind == "positive")}
                yield make_item((group, f"{kind}{place}"), group, kind, (context, references, text), ratings)


# Simplification.


def _asset(files: Files) -> Callable[[int, str, str], list[str]]:
    """Return a function that gives the simplifications of a sentence in ASSET's test set by place and text."""
    names = ["asset.test.orig", *(f"asset.test.simp.{number}" for number in range(10))]
    originals, *simple = read_alike([files[name] for name in names])

    def references(place: int, text: str, where: str) -> list[str]:
        fits = 0 <= place < len(originals)
        if (
            not fits
            or SequenceMatcher(None, letters(originals[place]), letters(text), autojunk=False).ratio() < 0.8
        ):
            raise ValueError(
                f"{where}: line {place + 1} of {files['asset.test.orig']} is another sentence; {REMEDY}"
            )
        return [lines[place].strip() for lines in simple]

    return references


def asset_human(files: Files) -> Iterator[Item]:
    """Read ASSET's human ratings: one simplification of a sentence, with three aspects by 15 raters."""
    references = _asset(files)
    ratings: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    places: dict[tuple[str, str, str], str] = {}
    columns = ("original", "simplification", "original_sentence_id", "aspect", "rating")
    for where, row in read_rows(files["human_ratings.csv"], *columns):
        key = (row["original_sentence_id"], row["original"], row["simplification"])
        ratings[key][row["aspect"]].append(as_number(row["rating"], f"{where}: 'rating'"))
        places.setdefault(key, where)
    for (number, original, simple), aspects in ratings.items():
        where = places[number, original, simple]
        texts = (original, references(int(as_number(number, where)), original, where), simple)
        means = {aspect: fmean(values) for aspect, values in aspects.items()}
        yield make_item((short_hash(original),), short_hash(original), "unlabelled", texts, means)


def simplicity_da(files: Files) -> Iterator[Item]:
    """Read Simplicity-DA: means of 15 raters; the texts are beside the single ratings, the references in ASSET."""
    references = _asset(files)
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    path = files["simplicity_DA_ratings.csv"]
    for _, row in read_rows(path, "sent_id", "sys_name", "orig_sent", "simp_sent"):
        pairs[row["sent_id"], row["sys_name"]] = (row["orig_sent"], row["simp_sent"])
    aspects = ("fluency", "meaning", "simplicity")
    for where, row in read_rows(files["simplicity_DA.csv"], "sent_id", "sys_name", *aspects):
        sentence, system = row["sent_id"], row["sys_name"]
        if (sentence, system) not in pairs:
            raise ValueError(f"{where}: {path} lacks sentence {sentence} of {system}; {REMEDY}")
        original, simple = pairs[sentence, system]
        texts = (original, references(int(as_number(sentence, where)) - 1, original, where), simple)
        ratings = {aspect: as_number(row[aspect], f"{where}: {aspect!r}") for aspect in aspects}
        yield make_item((sentence, system), short_hash(original), system, texts, ratings)


# Data to text, and questions.


def bartscore_data(files: Files) -> Iterator[Item]:
    """Read a data-to-text set of BARTScore's repository."""
    path = files["data.pkl"]
    for document, entry in read_pickle(path).items():
        where = f"{path}, document {document!r}"
        context, scores = one_line(get(entry, "src", str, where)), get(entry, "scores", dict, where)
        references = map(detokenize, get(entry, "ref_summs", list, where))
        texts = (context, references, detokenize(get(entry, "sys_summ", str, where)))
        ratings = {
            aspect: get(scores, aspect, int, where) for aspect in ("informativeness", "naturalness", "quality")
        }
        yield make_item((document,), short_hash(context), "unlabelled", texts, ratings)


def _e2e_ratings(path: Path, columns: str) -> tuple[dict[tuple[str, str], Any], dict[tuple[str, str], str]]:
    """Return, by input and system, lists of (rating, by the rater's own scale, check), and the outputs."""
    by_worker: dict[str, list[float]] = defaultdict(list)
    found: dict[tuple[str, str], list[tuple[str, float, str]]] = defaultdict(list)
    outputs: dict[tuple[str, str], str] = {}
    numbered = [(f"sys{number}", f"ref{number}", f"{columns}{number}") for number in range(1, 6)]
    for where, row in read_rows(path, "mr", "_worker_id", *(column for names in numbered for column in names)):
        for number, (system, output, column) in enumerate(numbered, 1):
            rating = as_number(row[column], f"{where}: {column!r}")
            by_worker[row["_worker_id"]].append(rating)
            key = (one_line(row["mr"]), row[system])
            found[key].append((row["_worker_id"], rating, row.get(f"check{number}") or ""))
            outputs.setdefault(key, row[output])
    scale = {worker: (fmean(ratings), pstdev(ratings) or 1.0) for worker, ratings in by_worker.items()}
    return {
        key: [(rating, (rating - scale[worker][0]) / scale[worker][1], check) for worker, rating, check in votes]
        for key, votes in found.items()
    }, outputs


def e2e(files: Files) -> Iterator[Item]:
    """Read the ratings of the E2E challenge; ``human`` is quality by the rater's own mean and deviation."""
    references: dict[str, list[str]] = defaultdict(list)
    for _, row in read_rows(files["testset_w_refs.csv"], "mr", "ref"):
        references[one_line(row["mr"])].append(one_line(row["ref"]))
    quality, outputs = _e2e_ratings(files["quality.csv"], "quality")
    naturalness, _ = _e2e_ratings(files["naturalness.csv"], "natur")
    for (mr, system), votes in quality.items():
        if (mr, system) not in naturalness:
            continue
        where = f"{files['testset_w_refs.csv']}, input {mr!r}"
        pairs = re.findall(r"([\w ]+)\[([^\]]*)\]", mr)
        keys = [re.sub("(?=[A-Z])| ", "_", key.strip()).lower() for key, _ in pairs]
        values = ",".join(f"{key}={value!r}" for key, (_, value) in zip(keys, pairs, strict=True))
        texts = (f"inform({values})", get(references, mr, list, where), detokenize(outputs[mr, system]))
        natural = naturalness[mr, system]
        ratings = {
            "quality": fmean(vote[0] for vote in votes),
            "quality_z": fmean(vote[1] for vote in votes),
            "nothing_missing": fmean("missing" not in vote[2] for vote in votes),
            "nothing_added": fmean("added" not in vote[2] for vote in votes),
            "naturalness": fmean(vote[0] for vote in natural),
            "naturalness_z": fmean(vote[1] for vote in natural),
        }
        group = short_hash(mr)
        yield make_item((group, system), group, system, texts, ratings, "quality_z")


def webnlg(*teams: str) -> Reader:
    """Make the reader of the human evaluation of WebNLG 2020 in English."""

    def read(files: Files) -> Iterator[Item]:
        path = files["rdf-to-text-generation-test-data-with-refs-en.xml"]
        try:
            entries = {entry.get("eid"): entry for entry in ElementTree.fromstring(read_text(path)).iter("entry")}
        except ElementTree.ParseError as error:
            raise ValueError(f"{path}: is not XML ({error}); {REMEDY}") from None
        aspects = ("Correctness", "DataCoverage", "Fluency", "Relevance", "TextStructure")
        for team in teams:
            outputs, rated = read_lines(files[f"{team}/primary.en"]), files[f"{team}/primary.json"]
            for sample, votes in parse_json(read_text(rated), str(rated), dict).items():
                where = f"{rated}, sample {sample}"
                place = int(as_number(sample, where)) - 1
                if not 0 <= place < len(outputs) or f"Id{sample}" not in entries:
                    raise ValueError(f"{where}: {files[f'{team}/primary.en']} or {path} lacks it; {REMEDY}")
                entry = entries[f"Id{sample}"]
                triples = [(triple.text or "").replace("_", " ") for triple in entry.iter("mtriple")]
                texts = (
                    "\n".join(map(one_line, triples)),
                    [one_line(lex.text or "") for lex in entry.iter("lex")],
                    one_line(outputs[place]),
                )
                ratings = {
                    aspect.lower(): [get(vote, aspect, int, where) for vote in votes.values()]
                    for aspect in aspects
                }
                yield make_item((sample, team), sample, team, texts, ratings)

    return read


def qgeval(files: Files) -> Iterator[Item]:
    """Read QGEval's generated questions; those of people are the references."""
    aspects = (
        "fluency",
        "clarity",
        "conciseness",
        "relevance",
        "consistency",
        "answerability",
        "answer_consistency",
    )
    keys = ("id", "passage", "reference", "answer")
    for where, record in read_records(files["instances.json"]):
        group, passage, reference, answer = (get(record, key, str, where) for key in keys)
        context = f"{one_line(passage)}\nAnswer: {one_line(answer)}"
        for question in get(record, "questions", list, where):
            _, _, system = get(question, "source", str, where).partition("_")
            if system == "reference":
                continue
            ratings = {aspect: get(question, aspect, int, where) for aspect in (*aspects, "answer_consistency")}
            texts = (context, [one_line(reference)], one_line(get(question, "prediction", str, where)))
            yield make_item((group, system), group, system, texts, ratings)
