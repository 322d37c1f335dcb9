"""The rules of judgements, by kinds of texts: who is judged, by what, and what is told; no model is asked.

What an NLI model says of pairs is made up by each test. As many texts are harmless as are wrong.
"""

import json
from types import SimpleNamespace

import pytest

from mars_score.data.checking import check_examples
from mars_score.errors import Notice
from mars_score.metrics.plus import Features, PlusConfig, plus, repetition
from mars_score.presets import Reliability
from mars_score.rows import Entailment, Judgement, Row, Verdict
from mars_score.text import PASSAGE_BREAK, normalise, passages_of
from mars_score.variants.judgements.nli_judge import NliJudge, Question
from tests.belief import ALL

NEUTRAL, CONTRADICTED, ENTAILED = Entailment(0.2, 0.1), Entailment(0.0, 0.99), Entailment(0.9, 0.0)


class Calls:
    """Asks no model: says of (premise, hypothesis) what a function does, and keeps what was asked."""

    def __init__(self, says=lambda premise, hypothesis: NEUTRAL):
        self.asked, self._says, self.models = [], says, SimpleNamespace(entailment_model=None)

    def encode(self, texts):
        """The more words two texts share, the nearer are their vectors."""
        return {text: SimpleNamespace(vector=Bag(text.lower().split())) for text in texts}

    def entails(self, pairs):
        asked = list(pairs)
        self.asked += asked
        return {pair: self._says(*pair) for pair in asked}


class Bag(frozenset):
    def __matmul__(self, other):
        return len(self & other)


def conclude(row, says=lambda premise, hypothesis: NEUTRAL, known=ALL, model=None, recall=0.9):
    """What follows for a row, all of whose references are at this token recall."""
    judge, calls = NliJudge(model, PlusConfig()), Calls(says)
    judge.reliability = known
    question = judge.asks(row, {(row.candidate, text): recall for text in row.references})
    found = judge.conclude([question], judge.judge([question], calls))[row]
    return SimpleNamespace(**found._asdict(), asked=calls.asked)


def text(candidate, *references):
    return Row(candidate, references)


def summary(candidate, context, *references):
    return Row(candidate, references, context, (), "summary")


@pytest.mark.parametrize(
    ("recalls", "close"), [((0.75,), True), ((0.7499,), False), ((0.2, 0.8, 0.3), True), ((), False)]
)
def test_a_text_is_close_by_three_quarters_of_a_reference(recalls, close):
    row = Row("A", tuple("bcd"[: len(recalls)]))
    known = {("B", "b"): 1.0, ("A", "e"): 1.0}
    known |= {("A", text): recall for text, recall in zip("bcd", recalls, strict=False)}
    judge = NliJudge(None, PlusConfig())
    judge.reliability = ALL
    assert judge.asks(row, known) == Question(
        row,
        by_reference=close,
        unchecked="" if close else "far from its references" if recalls else "no reference",
    )


def test_models_read_statements_and_plain_premises():
    """What a premise says word for word is not asked; judgements have plain sentences and whole premises."""
    reference, context = "The **road** is old [1]. Nobody came.", "The road&#39;s new."
    candidate = "Yes, the road is old! The road is old [1]. So, \u201cwe won\u201d \U0001f600"
    calls, rows = Calls(), [text(candidate, reference), summary(candidate, context, reference)]
    judge = NliJudge(None, PlusConfig())
    questions = [Question(rows[0], by_reference=True), Question(rows[1], by_context=True, by_reference=True)]
    found = judge.judge(questions, calls)
    sentences = "Yes, the road is old!", "The road is old [1].", 'So, "we won" \U0001f600'
    said = Entailment(0.2, 0.1), Entailment(1.0, 0.0), Entailment(0.2, 0.1)
    assert found[rows[0]] == [
        Judgement(sentence, reference, one) for sentence, one in zip(sentences, said, strict=True)
    ]
    assert found[rows[1]] == [Judgement(one.sentence, context, said[0], one) for one in found[rows[0]]]
    assert set(calls.asked) == {
        ("The road is old. Nobody came.", "The road is old."),
        ("The road is old. Nobody came.", "We won."),
        ("The road's new.", "The road is old."),
        ("The road's new.", "We won."),
    }
    assert judge.judge([Question(rows[1], by_context=True)], calls)[rows[1]][0].by_reference is None


# Verdicts on a sentence, by what its premise and a reference say of it


def follows(entailment, by_reference=None, task="summary", known=ALL, sentence="It is new."):
    """What follows for a candidate of one sentence of which its premise, and a reference, say something."""
    says = {"PREMISE": entailment, "REFERENCE": Entailment(0.0, by_reference or 0.0)}
    references = [] if by_reference is None else ["REFERENCE"]
    row = text(sentence, "PREMISE") if task == "text" else summary(sentence, "PREMISE", *references)
    return conclude(row, lambda premise, _: says[premise], known)


def verdict(probability, by_reference=None, task="summary", known=ALL):
    """The verdicts on a sentence that its premise, and a reference, contradict with some probability."""
    verdicts = follows(Entailment(0.0, probability), by_reference, task, known).contradicted
    assert all((one.sentence, one.number) == ("It is new.", 1) for one in verdicts)
    assert all((one.premise == "REFERENCE") == (one.source == "reference") or task == "text" for one in verdicts)
    return [(one.probability, one.premise) for one in verdicts]


@pytest.mark.parametrize(
    ("probability", "by_reference", "expected"),
    [
        (0.915, None, [(0.915, "PREMISE")]),
        (0.91, None, []),
        (0.915, 0.2, [(0.915, "PREMISE")]),
        (0.2, 0.915, [(0.915, "REFERENCE")]),
        (0.95, 0.19, []),
        (0.19, 0.95, []),
        (0.91, 0.91, []),
    ],
)
def test_a_verdict_is_certain_and_agreed_upon(probability, by_reference, expected):
    """Where a close summary is judged by a reference, too, the surer of both is told if the other agrees."""
    assert verdict(probability, by_reference) == expected
    assert verdict(probability, by_reference, known=Reliability(1.0, False, False)) == []


@pytest.mark.parametrize("certain", ["PREMISE", "REFERENCE"])
def test_a_verdict_is_told_by_a_premise_that_is_believed(certain):
    """The first judgement of a summary is by its context, and of another text by a reference."""
    known = ALL._replace(by_context=certain == "PREMISE", by_reference=certain == "REFERENCE")
    assert verdict(0.95, 0.92, known=known) == [(0.95, "PREMISE") if known.by_context else (0.92, "REFERENCE")]
    assert bool(verdict(0.95, 0.2, known=known)) is known.by_context
    assert bool(verdict(0.95, known=known)) is known.by_context
    assert bool(verdict(0.95, task="text", known=known)) is known.by_reference


def test_a_contradicted_sentence_is_not_supported():
    """A text loses by it as well; a summary by another quantity alone."""
    for entailment, support in ((Entailment(0.08, 0.91), 0.08), (Entailment(0.08, 0.92), 0.0)):
        summary, text = (follows(entailment, task=task) for task in ("summary", "text"))
        assert (summary.support, summary.contradicted_share) == (support, 0.0)
        assert (text.support, text.contradicted_share) == (None, 0.0 if support else 1.0)
    for known in (ALL._replace(support=0.0), Reliability(1.0, False, True)):
        unbelieved = follows(Entailment(0.08, 0.92), known=known)
        assert unbelieved.support == (0.08 if known.support else None)


@pytest.mark.parametrize(("probability", "is_unsupported"), [(0.049, True), (0.05, False)])
def test_a_statement_with_a_small_probability_is_unsupported(probability, is_unsupported):
    found = follows(Entailment(probability, 0.0)).unsupported
    assert found == (Verdict("It is new.", probability, "PREMISE", "context"),) * is_unsupported


READ = Entailment(0.5, 0.9, 0.95, ("new",))


def test_a_word_takes_from_support_what_it_gives_to_refutation():
    assert READ.support == pytest.approx(0.5 * 0.05)
    assert READ.refutation == pytest.approx(0.9 * 0.95)
    assert (Entailment(0.5, 0.9).support, Entailment(0.5, 0.9).refutation) == (0.5, 0.9)


def test_two_readings_allow_no_more_than_each_of_them():
    """Words are those of the reading that has least against the sentence."""
    other = Entailment(0.3, 0.2, 0.6, ("old",))
    for best in (READ.at_best(other), other.at_best(READ)):
        assert best == Entailment(0.5, 0.2, 0.6, ("old",))
    assert Entailment(0.5, 0.9).at_best(Entailment(0.3, 0.2)) == Entailment(0.5, 0.2)


def test_an_entailment_comes_back_from_json():
    assert Entailment.from_json(*json.loads(json.dumps(READ))) == READ


def test_a_verdict_has_the_words_of_its_premise():
    [found] = follows(Entailment(0.0, 0.99, 0.99, ("It",)), task="text").contradicted
    assert (found.words, found.absent, found.source) == (("It",), (), "reference")
    known = ALL._replace(min_refutation=0.85)
    assert [one.words for one in follows(READ, known=known).contradicted] == [("new",)]
    assert follows(READ, known=ALL).contradicted == ()  # .9 times .95


@pytest.mark.parametrize(
    ("sentence", "refuted"),
    [
        ("Duke Halvard beat King Tomas at the ford.", True),
        ("At the ford, Duke Halvard beat King Tomas!", True),
        ("Duke Halvard beat King Tomas at the old ford.", False),  # "old" may only be absent.
        ("King Tomas lost to Duke Halvard at the ford.", False),
        ("Eve, Bea and Ann came to Rome.", False),
        ("Rome, Bea and Ann came to Eve.", True),
    ],
)
def test_the_words_of_the_premise_in_another_order_need_less(sentence, refuted):
    premise = "It was in May. King Tomas beat Duke Halvard at the ford. Ann, Bea and Eve came to Rome."
    row = text(sentence, premise)
    known = ALL._replace(min_reordered=0.5)
    assert bool(conclude(row, lambda *_: Entailment(0.1, 0.6), known).contradicted) == refuted
    assert not conclude(row, lambda *_: Entailment(0.1, 0.4), known).contradicted
    assert not conclude(row, lambda *_: Entailment(0.1, 0.6), ALL).contradicted


@pytest.mark.parametrize(
    ("sentence", "refuted"),
    [
        ("King Tomas met Duke Halvard at the ford!", True),
        ("King Tomas met Duke Halvard at the inn.", False),
        ("King Tomas beat Duke Halvard at the old ford.", False),
        ("Was it in May?", False),
        ("Never.", False),
    ],
)
def test_one_other_word_than_the_premise_needs_less(sentence, refuted):
    row = text(sentence, "Always. It was in May. King Tomas beat Duke Halvard at the ford.")
    known = ALL._replace(min_replaced=0.65)
    assert bool(conclude(row, lambda *_: Entailment(0.1, 0.7), known).contradicted) == refuted
    assert not conclude(row, lambda *_: Entailment(0.1, 0.6), known).contradicted
    assert not conclude(row, lambda *_: Entailment(0.1, 0.7), ALL).contradicted


def test_a_sentence_is_unsupported_by_its_words():
    """Numbers and names that the context does not have stand first, and are told apart."""
    read = Entailment(0.9, 0.0, 0.99, ("Rome", "left", "1970"))
    [found] = follows(read, sentence="They left Rome in 1970.").unsupported
    assert set(found.words) == {"Rome", "1970", "left"}
    assert set(found.absent) == {"Rome", "1970"}
    assert found.words[-1] == "left"
    assert found.probability == pytest.approx(0.9 * 0.01)
    assert follows(read._replace(unsupported=0.9), sentence="They left the city.").unsupported == ()


# The question of passages

QUESTION = "Is damage by water covered?"


def row_of(candidate, context):
    [example] = check_examples([candidate], [context], use_context=True)
    return Row(candidate, **{name: getattr(example, name) for name in ("context", "task", "question")})


@pytest.mark.parametrize("candidate", ["Damage by water is covered.", "Water is not covered here.", QUESTION])
@pytest.mark.parametrize("passages", [["Damage by water is not covered."], ["Fire is covered.", "Water is not."]])
def test_a_question_of_passages_is_no_evidence(candidate, passages):
    """It is in no premise and no window; only the language model reads it. Its echo states nothing."""
    row = row_of(candidate, {"question": QUESTION, "passages": passages})
    assert passages_of(row.context) == passages
    assert row.prompt == PASSAGE_BREAK.join([QUESTION, *passages])
    found = conclude(row)
    assert all(QUESTION not in premise for premise, _ in found.asked)
    assert (found.support is None) == (candidate == QUESTION) == (found.unchecked == "nothing is stated")


# What a premise says word for word, and what models read


@pytest.mark.parametrize(
    ("candidate", "premise", "is_said"),
    [
        ("The list is [a, b, c].", "The list is [x, y, z].", False),
        ("The list is [1, 2, 3].", "The list is [1, 2, 3]", True),
        ("It rained.", "It rained!", False),
        ("It rained.\u00a0", "It rained.", True),
        ("The site is www.a.org today.", "The site is www.b.org today.", False),
        ("It **rained** [1].", "It rained [1].", True),
        ("It covers 40 km\u00b2.", "It covers 40 km.", False),
        ("<b>It</b> rained.", "It was late. <b>It</b> rained. He left.", True),
    ],
)
def test_a_model_is_not_asked_of_what_a_premise_says_word_for_word(candidate, premise, is_said):
    found = conclude(summary(candidate, premise))
    assert (len(found.asked), found.support) == ((0, 1.0) if is_said else (1, NEUTRAL.entailment))


@pytest.mark.parametrize(
    ("candidate", "premise", "asked"),
    [
        ("We won [1].", "They lost [2].", ("They lost [2].", "We won [1].")),
        ("We won [1].", "They lost.", ("They lost.", "We won.")),
        ("We won \U0001f600", "They lost \U0001f622", ("They lost \U0001f622", "We won \U0001f600.")),
        ("**We** won.", "They _lost_.", ("They lost.", "We won.")),
    ],
)
def test_marks_that_both_texts_have_stay(candidate, premise, asked):
    assert conclude(summary(candidate, premise)).asked == [asked]


# Quantities

QUANTITIES = [
    ("The ticket costs {}.", "\u20ac49.90", ["49.90 euros", "EUR 49.90"], "94.90 euros"),
    ("The tour takes {} in all.", "90 minutes", ["1.5 hours", "ninety minutes"], "2.5 hours"),
    ("Turnout fell to {} this year.", "25%", ["25 percent"], "52%"),
]
FORMS = [(text, value, said) for text, value, equal, _ in QUANTITIES for said in equal]
OTHERS = [(text, value, other) for text, value, _, other in QUANTITIES]


@pytest.mark.parametrize(("sentence", "value", "said"), FORMS)
def test_a_quantity_in_another_notation_is_no_contradiction(sentence, value, said):
    """A model reads it in the notation of the premise, whoever has which."""
    for one, other in ((value, said), (said, value)):
        found = conclude(text(sentence.format(one), sentence.format(other)))
        assert (found.contradicted, found.contradicted_share, found.asked) == ((), 0.0, [])


@pytest.mark.parametrize(("sentence", "value", "said"), OTHERS)
def test_another_quantity_is_a_contradiction_whatever_a_model_says(sentence, value, said):
    """Of a text and of a summary, by its context or a close reference; the words are told."""
    candidate, premise = sentence.format(said), sentence.format(value)
    for row, source in (
        (text(candidate, premise), "reference"),
        (summary(candidate, premise), "context"),
        (summary(candidate, "It is new.", premise), "reference"),
    ):
        found = conclude(row, lambda premise, hypothesis: ENTAILED)
        [verdict] = found.contradicted
        assert (verdict.sentence, verdict.premise, verdict.source) == (candidate, premise, source)
        assert verdict.probability is None
        assert verdict.words[0] in candidate
        assert verdict.words[0] not in premise
        assert found.contradicted_share == 1
        assert found.support == (0.0 if row.task == "summary" else None)
    far = conclude(text(candidate, premise), recall=0.7)
    assert (far.contradicted, far.unchecked) == ((), "far from its references")


# Misspelt words

PREMISE = "The minister resigned after the report came from Rome."


def differs(premise, hypothesis):
    return ENTAILED if premise == hypothesis else CONTRADICTED


@pytest.mark.parametrize(
    ("word", "misspelt"),
    [
        ("minister", "minsiter"),
        ("minister", "ministter"),
        ("resigned", "resgned"),
        ("from", "form"),  # a word, too
        ("from", "frm"),  # short
    ],
)
def test_a_misspelt_word_is_no_contradiction(word, misspelt):
    found = conclude(text(PREMISE.replace(word, misspelt), PREMISE), differs)
    assert (found.contradicted, found.contradicted_share) == ((), 0.0)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("minister", "mayor"),
        ("report", "resort"),
        ("came", "come"),
        ("from", "for"),
        ("Rome", "Paris"),
    ],
)
def test_another_word_is_a_contradiction_if_a_model_says_so(word, other):
    candidate = PREMISE.replace(word, other)
    [verdict] = conclude(text(candidate, PREMISE), differs).contradicted
    assert (verdict.sentence, verdict.probability) == (candidate, CONTRADICTED.contradiction)
    assert conclude(text(candidate, PREMISE)).contradicted == ()


# Words to the listener, questions, refusals, fragments


@pytest.mark.parametrize(
    ("lead", "support"), [("", 1.0), ("Sure! ", 1.0), ("So, ", ENTAILED.entailment), ("- ", ENTAILED.entailment)]
)
def test_what_stands_beside_words_to_the_listener_is_judged(lead, support):
    right, wrong = (
        conclude(summary(f"{lead}The pool reopens {when}.", "The pool reopens late."), differs)
        for when in ("late", "early")
    )
    assert (right.support, right.contradicted) == (support, ())
    assert (wrong.support, len(wrong.contradicted)) == (0.0, 1)


@pytest.mark.parametrize(
    ("candidate", "notice"),
    [
        ("Are dogs allowed? Who knows?", None),
        ("The text does not mention how long it took.", Notice.REFUSAL),
        ("Dogs? Always. In the park.", Notice.FRAGMENT),
    ],
)
@pytest.mark.parametrize("is_summary", [True, False])
def test_what_states_nothing_is_neither_supported_nor_contradicted(candidate, notice, is_summary):
    row = summary(candidate, PREMISE, PREMISE) if is_summary else text(candidate, PREMISE)
    found = conclude(row, lambda premise, hypothesis: CONTRADICTED)
    assert (found.asked, found.support, found.contradicted, found.unsupported) == ([], None, (), ())
    assert (found.contradicted_share, found.unchecked) == (None, "nothing is stated")
    assert found.notices == ({notice} if notice else set())


def test_statements_beside_questions_refusals_and_fragments_are_judged():
    candidate = "Are dogs allowed? They are allowed. Always in winter. The text does not say why."
    found = conclude(summary(candidate, "They are banned.", "No."), lambda *_: CONTRADICTED)
    assert [(one.sentence, one.number) for one in found.contradicted] == [("They are allowed.", 2)]
    assert (found.support, found.contradicted_share, found.unchecked) == (0.0, 0.0, "")
    assert found.notices == {Notice.CONTRADICTED, Notice.REFUSAL, Notice.FRAGMENT}


def test_a_number_of_a_fragment_is_checked():
    """But it is not supported, as only a statement can be."""
    reference = "The deposit: three months of rent"
    wrong, right = (f"The deposit: {count} months of rent" for count in ("two", "three"))
    found = conclude(summary(wrong, reference))
    assert [one.words for one in found.contradicted] == [("two months",)]
    assert (found.support, found.unchecked) == (None, "")
    assert conclude(summary(right, reference)).contradicted == ()


# References that disagree


@pytest.mark.parametrize(
    ("others", "is_contradicted"),
    [([], True), ([NEUTRAL], True), ([ENTAILED], False), ([CONTRADICTED, ENTAILED], False), ([NEUTRAL] * 2, True)],
)
def test_another_reference_that_entails_a_sentence_acquits_it(others, is_contradicted):
    references = [f"The {word} reopens early." for word in ("pool", "hall", "shop")][: 1 + len(others)]
    says = dict(zip(references, [CONTRADICTED, *others], strict=True))
    found = conclude(text("The pool reopens late.", *references), lambda premise, _: says[premise])
    assert [one.premise for one in found.contradicted] == references[:1] * is_contradicted
    assert found.contradicted_share == is_contradicted
    by_both = conclude(
        summary("The pool reopens late.", "It is a pool.", *references),
        lambda premise, _: says.get(premise, CONTRADICTED),
    )
    assert bool(by_both.contradicted) is is_contradicted


# Repetition


@pytest.mark.parametrize(
    ("candidate", "references", "expected"),
    [
        ("boats and boats", (), 1 / 2),
        ("boats and boats", ("The river.",), 1 / 2),
        ("boats and boats", ("boats, boats",), 0),
        ("boats and boats", ("The river.", "boats, boats, boats, boats"), 0),
        ("boats and boats, boats, boats", ("boats, boats",), 1 / 4),
        ("They came.", ("boats, boats",), 0),
    ],
)
def test_repetition_counts_beyond_the_reference_with_most(candidate, references, expected):
    assert repetition(Row(candidate, references), PlusConfig()) == pytest.approx(expected)


def test_copied_words_count_beyond_the_references_of_a_dialogue():
    turns, reply = "We will all meet at noon.\nWho comes?", "Then we will all meet at noon."
    row = Row(reply, ("I come.",), turns, (), "dialogue")
    assert repetition(row, PlusConfig()) > 0
    assert repetition(Row(reply, ("I come.", reply), turns, (), "dialogue"), PlusConfig()) == 0


# Words broken at the end of a line, and languages


@pytest.mark.parametrize(
    ("broken", "whole", "is_joined"),
    [
        ("It opens on Tues-\nday.", "It opens on Tuesday.", True),
        ("It is an infor\u00admation centre.", "It is an information centre.", True),
        ("He left - they came.", "He left they came.", False),
        ("They re-\nsign it.", "They resign it.", False),
        ("It has two- and three-storey houses.", "It has twoand three-storey houses.", False),
    ],
)
def test_words_broken_at_the_end_of_a_line_are_joined(broken, whole, is_joined):
    for one, other in ((broken, whole), (whole, broken)):
        found = conclude(text(normalise(one), normalise(other)))
        [asked] = found.asked or [(whole, whole)]
        assert (asked == (whole, whole)) is is_joined


FRENCH = "Le conseil municipal a voté la fermeture du musée pendant tout l'hiver prochain."


@pytest.mark.parametrize(
    ("candidate", "context", "is_judged"),
    [
        ("It is closed in winter.", "The council closes the museum in winter.", True),
        ("Hb is 9.1 g/dl.", "Hb 9.1 g/dl | K 3.9 mmol/l", True),
        ("x is 5.", "def f(x): return x + 5", True),
        ("Le musée est fermé pendant tout l'hiver.", FRENCH, False),
        ("The museum is closed in winter.", FRENCH, False),
        ("Das Museum ist im Winter leider geschlossen.", "The museum is closed in winter, they said.", False),
    ],
)
def test_what_is_certainly_another_language_is_not_judged(candidate, context, is_judged):
    """By models that ship: others may know it. What gives no clue is judged."""
    for model in ("medium-nli", None):
        found = conclude(summary(candidate, context), model=model)
        known = is_judged or model is None
        assert (found.unchecked, found.notices - {Notice.FRAGMENT}) == (
            ("", set()) if known else ("not English", {Notice.NOT_ENGLISH})
        )


@pytest.mark.parametrize(
    ("how", "expected"),
    [("max", {"references": 0.8, "sentences": 0.9}), ("mean", {"references": 0.5, "sentences": 0.6})],
)
def test_the_aggregation_of_references_reaches_the_term_sentences(how, expected):
    row, terms = Row("a", ("b", "c"), "d", (), "data"), frozenset({"references", "sentences"})
    features = Features(row, terms, recalls=[0.2, 0.8], reference_cosines=[0.3, 0.9])
    values = {term.name: term.value for term in plus(features, PlusConfig(reference_aggregation=how))}
    assert values == pytest.approx(expected)


# Facts

SOURCE = "Anna Rossi opened the hall in Bonn in 1969, and 300 people came."


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        ("It was Anna Bianchi who opened the hall.", ("Bianchi",)),
        ("The hall was opened in 1970 in Bonn.", ("1970",)),
        ("In Bonn 500 people saw Anna Rossi.", ("500",)),
        ("In Bonn three hundred people saw Rossi in the new hall.", ()),
    ],
)
def test_facts_that_no_source_of_a_summary_or_a_record_has_are_told(candidate, words):
    """They change no score, and are no contradiction; of replies and texts none are told."""
    for row in (
        summary(candidate, SOURCE),
        summary(candidate, f"It is new.{PASSAGE_BREAK}{SOURCE}", "A reference."),
        Row(candidate, (SOURCE,), "name: x", (), "data"),
        Row(candidate, ("A hall was opened.",), f"facts: {SOURCE}", (), "data"),
    ):
        found = conclude(row)
        told = [(one.sentence, one.words, one.number, one.source) for one in found.unsupported]
        assert told == [(candidate, words, 1, "context")] * bool(words)
        assert found.contradicted_share in (0.0, None)
        assert found.contradicted == ()
    for task in ("text", "dialogue"):
        assert conclude(Row(candidate, (SOURCE,), SOURCE, (), task)).unsupported == ()


def test_a_sentence_that_is_not_entailed_has_its_words_as_well():
    candidate = "It was Anna Bianchi who opened the hall. It was late."
    found = conclude(summary(candidate, SOURCE), lambda *_: Entailment(0.01, 0.1))
    assert [(one.probability, one.words, one.number) for one in found.unsupported] == [
        (0.01, ("Bianchi",), 1),
        (0.01, (), 2),
    ]


# What a contradicted summary loses


@pytest.mark.parametrize(
    ("known", "contradicted_by", "candidate", "share"),
    [
        (ALL, "reference", "The road is old.", 0.0),
        (ALL._replace(halves_summaries=True), "reference", "The road is old.", 1.0),
        (ALL._replace(halves_summaries=True), "context", "The road is old.", 0.0),
        (ALL, "context", "The road is 7 km long.", 1.0),
        (ALL, "nothing", "The road is 5 km long.", 0.0),
    ],
)
def test_a_summary_loses_half_by_a_quantity_or_by_a_reference_where_that_is_reliable(
    known, contradicted_by, candidate, share
):
    """By any verdict it loses its support."""
    texts = {"context": "The road is 5 km long. It was built here.", "reference": "The road is new."}

    def says(premise, hypothesis):
        return Entailment(0.0, 0.95 if premise == texts.get(contradicted_by) else 0.3)  # .3 does not rule it out

    found = conclude(summary(candidate, *texts.values()), says, known)
    assert found.contradicted_share == share
    assert bool(found.contradicted) is (contradicted_by != "nothing")
    if found.contradicted:
        assert found.support == 0
