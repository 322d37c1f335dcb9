"""Each variant against a plain form of it in float64 (tests/oracle_forms.py), through :meth:`MarsScorer.score`.

The rows are such that each constant of a configuration counts in one of them; see the comments.
"""

import copy
from types import SimpleNamespace

import pytest
import torch
from tokenizers import normalizers

from mars_score import MarsScorer
from mars_score.metrics.plus import PlusConfig
from mars_score.presets import Reliability
from tests import oracle_forms, tiny_models
from tests.belief import ALL, believe
from tests.jsonl import columns
from tests.oracle_infilling import infilled

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
LONG = " ".join(tiny_models.TEXT.replace('"', "").split() * 2)  # A quotation is no sentence of its own to spaCy.
FRIENDS = ["She called a friend and waited.", "A truck took her home."]
LATE, RIVER = "It was late and they won.", "By the river, where they waited for the train home."
CAR, GAME, END, TRAIN = (
    "Her old car broke down.",
    "They won the old game. It was late.",
    "Was it the end?\nI think so.",
    "It was late?\nThe old train came late.",
)
# Ten long words apart, and eleven; words of three letters.
APART = "bridge market letter station council river museum library people summer bridge"
FURTHER = f"mayor {APART[:-7]} mayor"
# A text of 149, 150 and 151 words, and texts whose parts around the nearest one have as many.
NUMBERS = "two books and three boats of four people from five parks by six roads"
BOOKS = NUMBERS.split() * 20
SHELF = " ".join(BOOKS)
WHOLE = [f"The train was late. {' '.join(BOOKS[:count])}." for count in (145, 146, 147)]
GROWN = [
    f"They saw {' '.join(BOOKS[:before])}. The train was late. She read {' '.join(BOOKS[:after])}. {CAR} {SHELF}."
    for before, after in ((5, 87), (5, 88), (89, 3), (40, 60), (60, 40))
]
BESIDE = [f"{SHELF}. {CAR} It rained. The train was late. They won. {LATE}", f"{SHELF}. {RIVER}"]
PARAGRAPHS = [
    f"Where? {CAR} {' '.join(BOOKS[:60])}\n\nThe train was late. {RIVER}\n\nA book\n\n{' '.join(BOOKS[:count])}."
    for count in (60, 70)
]
MANY = [f"It rained on day {number}." for number in range(19)]
BOATS = "four boats in the park."
SEEN = f"{CAR} They saw {BOATS}"
# Candidate, references, context, task, samples; a question of passages ends in "\x1f".
FOLLOWING = ("The train was early. They won.", ["They lost it.", CAR], f"{CAR} {LATE}", "summary", [])
COPIED = ("people", ["Old people came."], "They met people people", "text", [])
BEYOND = ("She took a train.", ["She called a friend and waited."], f"{LONG} {CAR} " * 4, "text", [])
# Probabilities of a contradiction that are certain, and likely; and all of the weight of support.
BELIEVED = {"verdicts": (0.6, 0.5), "belief": 1.0}
JUDGED = [
    FOLLOWING,
    # Sentences that are stated word for word, questions, openings, single words, and texts that state nothing.
    *(
        (text, [f"{GAME} So, they lost it?", f"- {CAR}"], f"Well: {GAME} Her old car broke down!", task, [RIVER])
        for task in ("text", "summary")
        for text in (
            f"Yes, they won the old game\u2026 Thanks! {CAR} They lost it.",
            f"- In short, they\u2019re late! {CAR[:-1]}?",
            "They lost it? They won it?",
            "Nobody!",
            "!?",
        )
    ),
    # Other numbers than the reference or the context has, and the same ones.
    *(
        (f"They saw {count} boats in the park. They won.", [f"They won. They saw {BOATS}"], SEEN, task, [])
        for count in ("two", "four")
        for task in ("text", "summary")
    ),
    ("They saw two boats in the park.", ["It was late."], f"They saw {BOATS}", "summary", []),
    # Less than three quarters of the reference.
    *(("They.", [f"{NUMBERS}, 1,250 {RIVER}"], CAR, task, []) for task in ("text", "summary")),
]
CASES = [
    ("She took a train.", FRIENDS, CAR, "text", ["She waited for a train.", LATE]),
    ("They won the old game \u2014 \u4f60\u597d!", ["They did not win."], LONG, "text", [RIVER]),
    (" ", ["Nobody came."], "It was late.", "text", []),
    ("She took a train.", ["The library closed early, so she took the train home after all."], "", "data", []),
    ("  The end.  ", ["Yes"], END, "dialogue", ["The ends.", LATE, "Yes"]),
    (f"{LATE} again!", ["q"], GAME, "text", ["They lost", "They won the old game.", RIVER]),
    ("They lost it.", ["They won the old game. They won."], GAME, "text", ["They lost", RIVER]),
    ("In the park", ["At the old museum, by the river.", "Nowhere"], "Where did they go?", "text", []),
    ("They won the train.", ["Yes"], END, "dialogue", [LATE]),
    ("A train, their train: the last Train home.", ["She took the train home."], CAR, "text", [LATE]),
    ("They took a train home.", ["Nowhere", "She took the train home."], "inform(train=home)", "data", []),
    ("Yes. The old train came late, the old train!", ["No, it came early."], TRAIN, "dialogue", ["No."]),
    ("came late", ["No, it came early."], TRAIN, "dialogue", []),
    ("The old train came late. The old train came late!", ["No, it came early."], TRAIN, "dialogue", []),
    # Runs of four, five and six words that the turns before have.
    ("I hope the old train came soon.", ["No, it came early."], TRAIN, "dialogue", []),
    ("I hope the old train came late.", ["No, it came early."], TRAIN, "dialogue", []),
    ("late the old train came late", ["No, it came early."], TRAIN, "dialogue", []),
    # Repetitions ten and eleven long words before, and of short words.
    (APART, ["The bridge."], CAR, "text", []),
    (FURTHER, ["The mayor."], CAR, "text", []),
    ("The car and the car and the boat was late, so late.", ["The car was late."], CAR, "text", []),
    # Twenty sentences and more.
    (" ".join([*MANY, "They lost it."]), ["It rained."], CAR, "text", []),
    (" ".join([*MANY, "They lost it.", "She called a friend and waited."]), ["It rained."], CAR, "text", []),
    # A context of 101 words.
    ("They walk.", ["They walk."], " ".join(LONG.split()[:101]), "text", []),
    # Passages and a question; passages that are short.
    ("The work began in March.", ["It began in March."], f"When did it begin?\x1f{LONG}\x1e{CAR}", "summary", []),
    (f"{LATE} The car is old.", ["It was late."], f"When?\x1f{CAR}\x1e{LATE} {RIVER}", "summary", [RIVER]),
    # References that are near their contexts, more and less.
    *(("They walk.", [text], text, "text", [RIVER]) for text in (CAR, GAME, RIVER)),
    *(
        ("They walk.", [text], f"{text} {other}", "text", [])
        for text, other in ((CAR, LATE), (GAME, CAR), (LATE, GAME))
    ),
    # Repetitions that the references have, too, and those that go further.
    ("old boats, old boats, boats came", ["The boats saw boats."], CAR, "text", []),
    ("The boats saw boats late, late.", ["The boats saw boats, boats and boats.", "They won."], CAR, "text", []),
    ("The old train came late, and late.", ["The old train came late, late, late."], TRAIN, "dialogue", []),
    ("The old train came late.", ["No, it came early."], TRAIN, "dialogue", []),
    *JUDGED,
]
# Contexts and references of which a part is the premise.
LONG_CASES = [
    *(("The train was early.", ["It was late."], text, "summary", []) for text in (*WHOLE, *GROWN, *BESIDE)),
    *(("The train was early.", ["It was late."], text, "summary", []) for text in PARAGRAPHS),
    *(("The train was early.", [text, CAR], LATE, "text", []) for text in (*WHOLE[1:], *GROWN)),
]


def context_of(case):
    """As it is given: turns as a list, passages as passages; a record is told apart by its task."""
    context, task = case[2:4]
    if "\x1f" in context:
        question, passages = context.split("\x1f")
        return {"question": question, "passages": passages.split("\x1e")}
    return context.splitlines() if task == "dialogue" and context else context


def arguments(cases, has_references=True, has_samples=True):
    """Of ``MarsScorer.score``."""
    candidates, references, _, tasks, samples = map(list, zip(*cases, strict=True))
    return {
        "predictions": candidates,
        "references": references if has_references else None,
        "contexts": [context_of(case) for case in cases],
        "samples": samples if has_samples else None,
        "tasks": [task if task in ("data", "summary") else None for task in tasks],
    }


def expected_scores(models, cases, has_references=True, has_samples=True, **options):
    """Those of the oracle; of BELIEVED models, if ``options`` do not say another."""
    return [
        oracle_forms.plus(
            models,
            candidate,
            references if has_references else [],
            context,
            task,
            samples if has_samples else [],
            **(options or BELIEVED),
        )
        for candidate, references, context, task, samples in cases
    ]


class Centre(torch.nn.Module):
    """Takes the mean of some texts off sentence vectors: a tiny encoder's are all alike."""

    def __init__(self, mean):
        super().__init__()
        self.register_buffer("mean", mean)

    def forward(self, features):
        return {**features, "sentence_embedding": features["sentence_embedding"] - self.mean}


@pytest.fixture(scope="module")
def models():
    """Settings; windows of the models hold all texts but the longest context."""
    encoder = tiny_models.tiny_encoder(n_positions=254)
    encoder.append(Centre(encoder.encode(tiny_models.TEXT.split(), convert_to_tensor=True).mean(0)))
    return {
        "language_model": tiny_models.tiny_gpt2(seed=1, n_positions=256, initializer_range=0.04),
        "encoder": encoder,
        "entailment_model": tiny_models.tiny_nli(n_positions=400),
        "dtype": "float64",
    }


@pytest.fixture(scope="module", autouse=True)
def believed():
    """The NLI model is believed as one that ships."""
    with pytest.MonkeyPatch.context() as patch:
        believe(patch, ALL, *BELIEVED["verdicts"])
        yield


@pytest.fixture
def make(models):
    """Makes scorers of the models, in which settings of the test take the place of others."""

    def make_scorer(**settings):
        return MarsScorer("mini", **{"store": False, **models, **settings})

    return make_scorer


# plus and fast


@pytest.mark.parametrize(
    ("variant", "has_references", "has_samples"),
    [("plus", True, True), ("plus", False, False), ("fast", True, False), ("fast", False, True)],
)
def test_scores_equal_the_oracle(models, make, variant, has_references, has_samples):
    cases = [case for case in CASES if case[2] or has_references]
    given = {"has_references": has_references, "has_samples": has_samples}
    likelihood = 0.15 if variant == "plus" else 0
    expected = expected_scores(models, cases, **given, likelihood=likelihood, **BELIEVED)
    result = make(variant=variant, batch_size=2).score(**arguments(cases, **given))
    assert result.scores == pytest.approx(expected, abs=1e-9)
    assert len({round(score, 6) for score in expected}) > 20
    assert has_references or f"|variant:{variant}|references:0|" in str(result.signature)


def test_neither_the_order_nor_the_batch_nor_other_rows_matter(make):
    cases = CASES[10:24]  # of all tasks; many have one context
    scores = make(variant="plus", batch_size=2).score(**arguments(cases)).scores
    backwards = make(variant="plus").score(**arguments([*cases, *cases][::-1])).scores
    assert backwards == pytest.approx([*scores, *scores][::-1], abs=1e-9)


BY_REFERENCE, BY_CONTEXT = Reliability(0.5, False, True), Reliability(0.5, True, False)


@pytest.mark.parametrize(
    ("known", "has_references", "expected"),
    [
        (Reliability(), True, {"by": []}),  # of a model that does not ship
        (Reliability(0.0), True, {"by": [], "belief": 0.0}),
        (BY_REFERENCE, True, {"by": ["reference"], "verdicts": BELIEVED["verdicts"]}),
        (BY_CONTEXT, True, {"by": ["context"], "verdicts": BELIEVED["verdicts"]}),
        (BY_CONTEXT, False, {"by": ["context"], "verdicts": BELIEVED["verdicts"]}),
    ],
)
def test_what_is_not_believed_does_not_count(models, make, monkeypatch, known, has_references, expected):
    believe(monkeypatch, known, *BELIEVED["verdicts"])
    scores = make(variant="fast").score(**arguments(JUDGED, has_references)).scores
    forms = expected_scores(models, JUDGED, has_references, likelihood=0, unsupported=0.0, **expected)
    believed = expected_scores(models, JUDGED, has_references, likelihood=0, **BELIEVED)
    assert scores == pytest.approx(forms, abs=1e-9)
    assert forms != pytest.approx(believed, abs=1e-3)


@pytest.mark.parametrize("verdicts", [(0.0, 0.0), BELIEVED["verdicts"]])
def test_verdicts_equal_the_oracle(models, make, monkeypatch, verdicts):
    """With their premises and probabilities; at first of all judged sentences but questions."""
    believe(monkeypatch, ALL, *verdicts)
    cases, numbers = CASES if any(verdicts) else CASES + LONG_CASES, set()
    result = make(variant="fast").score(**arguments(cases))
    for row, case in zip(result.row_scores, cases, strict=True):
        judged = oracle_forms.judgements(models, *case[:4], certain=verdicts[0]) if row.terms else []
        expected = [
            (one.sentence, *denial)
            for one in judged
            if (one.number or one.supported is not None) and (denial := one.denial(*verdicts))
        ]
        found = [(verdict.sentence, verdict.premise) for verdict in row.contradicted]
        assert found == [(sentence, premise) for sentence, _, premise in expected]
        for verdict, (_, contradicted, _) in zip(row.contradicted, expected, strict=True):
            assert verdict.probability == (contradicted and pytest.approx(contradicted, abs=1e-9))
        numbers.add((len(found), len(judged)))
    assert numbers >= ({(0, 0), (0, 1), (1, 1), (0, 2), (1, 2)} if any(verdicts) else {(0, 0), (1, 1), (1, 2)})


@pytest.mark.parametrize("context_weight", [0.0, 1.0])
def test_the_weight_of_the_context_is_a_setting(models, make, context_weight):
    expected = expected_scores(models, CASES[:12], likelihood=0, context_weight=context_weight, **BELIEVED)
    result = make(variant="fast", context_weight=context_weight).score(**arguments(CASES[:12]))
    assert result.scores == pytest.approx(expected, abs=1e-9)


def test_without_contexts(models, make):
    cases = [(*case[:2], "", "text", case[4]) for case in CASES[:12]]
    texts = arguments(cases)
    del texts["contexts"], texts["tasks"]
    result = make(variant="plus", use_context=False).score(**texts)
    assert result.scores == pytest.approx(expected_scores(models, cases), abs=1e-9)


def test_the_terms(make):
    result = make(variant="plus").score(**arguments(CASES))
    names = [[term.name for term in row.terms] for row in result.row_scores]
    assert names[0] == ["references", "context", "samples", "likelihood", "repetition", "contradiction"]
    assert names[4] == ["references", "context", "samples", "repetition"]  # a dialogue
    assert names[10] == ["references", "sentences", "likelihood", "repetition"]  # data
    are_judged = [any(map(oracle_forms.is_judged, oracle_forms.stating(case[0]))) for case in CASES]
    is_summary = [case[3] == "summary" for case in CASES]
    assert list(map(bool.__and__, is_summary, are_judged)) == ["support" in of_row for of_row in names]
    assert is_summary != are_judged
    assert names[2] == []
    for row, of_row, case in zip(result.row_scores, result.to_dict()["rows"], CASES, strict=True):
        assert row.score == pytest.approx(sum(term.value * term.weight for term in row.terms))
        assert [sample["text"] for sample in of_row["samples"]] == (case[4] if row.terms else [])


@pytest.mark.parametrize(
    ("setting", "term"),
    [
        ("context_weight", "context"),
        ("sample_weight", "samples"),
        ("likelihood_weight", "likelihood"),
        ("repetition_penalty", "repetition"),
        ("support_weight", "support"),
        ("contradiction_penalty", "contradiction"),
    ],
)
def test_a_term_of_weight_0_is_left_out(make, setting, term):
    """And no model is called for it; contradictions are told as long as sentences are judged at all."""
    stages = []
    texts = arguments([FOLLOWING] if term == "support" else CASES[:1], has_samples=term != "samples")
    weights = {setting: 0.0} | ({"support_weight": 0.0} if term == "contradiction" else {})
    scorer = make(variant="plus", **weights, progress=lambda stage, *_: stages.append(stage))
    [row] = scorer.score(**texts).row_scores
    assert term not in {kept.name for kept in row.terms}
    assert term not in stages


def test_a_repeated_reference_counts_once(make):
    """Also of references that differ by white space alone, and with samples."""
    candidate, references, *others = CASES[0]
    rows = [[*references, *more] for more in ([], references[:1], [f" {references[1]}\n"] * 9)]
    scorer = make(variant="plus", reference_aggregation="mean")
    scores = scorer.score(**arguments([(candidate, of_row, *others) for of_row in rows])).scores
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-12)


def test_references_are_averaged_if_asked_for(models, make):
    candidate, references, context, *_ = CASES[0]
    scorer = make(variant="fast", context_weight=0.0, contradiction_penalty=0.0, reference_aggregation="mean")
    recalls = [oracle_forms.recall(models["encoder"], candidate, text) for text in references]
    assert scorer.score([candidate], [references], [context]).scores == [pytest.approx(sum(recalls) / 2, abs=1e-9)]


def test_a_text_without_tokens_matches_itself_alone(make):
    tokenizer = copy.deepcopy(tiny_models.roberta_tokenizer())
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("~", "")
    encoder = tiny_models.tiny_encoder(tokenizer=tokenizer)
    scorer = make(encoder=encoder, variant="fast", use_context=False)
    rows = scorer.score(["~", "~", "A dog."], ["~", "A dog.", "~"]).row_scores
    assert [row.terms[0].value for row in rows] == [1, 0, 0]


@pytest.fixture(scope="module")
def repeating():
    """A language model that repeats words."""
    pair = tiny_models.tiny_gpt2(n_positions=256, initializer_range=1.0)
    for block in pair[0].transformer.h:
        for layer in (block.attn.c_proj, block.mlp.c_proj):
            torch.nn.init.zeros_(layer.weight)
    return pair


@pytest.fixture(scope="module")
def far_reader():
    """A language model with room for 2,500 tokens, which finds candidates likelier than a uniform guess does."""
    return tiny_models.tiny_gpt2(seed=1, n_positions=2500, initializer_range=0.04)


def test_what_copying_adds_to_a_likelihood_is_limited(models, make, repeating):
    """Without references there is no limit."""
    candidate, _, context, *_ = COPIED
    given, alone = (oracle_forms.log_probability(*repeating, text, candidate) for text in (context, ""))
    assert given - alone > 3
    for has_references in (True, False):
        expected = expected_scores({**models, "language_model": repeating}, [COPIED], has_references)
        scorer = make(language_model=repeating, variant="plus")
        assert scorer.score(**arguments([COPIED], has_references)).scores == pytest.approx(expected, abs=1e-9)


def test_a_context_of_over_2048_tokens_is_cut(models, make, far_reader):
    assert len(oracle_forms.encode(far_reader[1], BEYOND[2])) > 2200
    expected = expected_scores({**models, "language_model": far_reader}, [BEYOND])
    result = make(language_model=far_reader, variant="plus").score(**arguments([BEYOND]))
    assert result.scores == pytest.approx(expected, abs=1e-9)
    assert any("max_context_tokens" in notice for notice in result.notices)


# By constant the cases that it counts in: a second one where the first shows a larger or a smaller value only.
COUNTING = {
    name: cases
    for names, cases in [
        ("context_weight sample_weight repetition_penalty context_words word_letters copied_words", [11]),
        ("likelihood_weight contradiction_penalty likelihood_words log_p_weight", [17]),
        ("support_weight close_context", [24]),
        ("window_words", [22, 23]),
        ("repetition_words", [17, 18]),
        ("premise_words", [23]),
        ("max_sentences", [21]),
    ]
    for name in names.split()
}


@pytest.fixture(scope="module")
def unchanged(models):
    """Scores by case."""
    numbers = sorted({number for of_constant in COUNTING.values() for number in of_constant})
    scorer = MarsScorer("mini", variant="plus", store=False, **models)
    scores = scorer.score(**arguments([CASES[number] for number in numbers])).scores
    return dict(zip(numbers, scores, strict=True))


CONSTANTS = {name: value for name, value in vars(PlusConfig()).items() if type(value) in (int, float)}


@pytest.mark.parametrize("name", CONSTANTS)
def test_each_constant_counts(make, unchanged, request, name):
    """One that is a tenth smaller or larger gives other scores than those that equal the oracle."""
    special = {"max_pmi": ("repeating", COPIED), "max_context_tokens": ("far_reader", BEYOND)}
    settings = {"variant": "plus"}
    if name in special:
        fixture, case = special[name]
        settings["language_model"], cases = request.getfixturevalue(fixture), [case]
        expected = make(**settings).score(**arguments(cases)).scores
    else:
        cases = [CASES[number] for number in COUNTING[name]]
        expected = [unchanged[number] for number in COUNTING[name]]
    value = CONSTANTS[name]
    step = max(1, value // 10) if isinstance(value, int) else value / 10
    for changed in (value - step, value + step):
        scores = make(**settings, **{name: changed}).score(**arguments(cases)).scores
        assert max(abs(new - old) for new, old in zip(scores, expected, strict=True)) > 1e-6


def test_the_limit_of_contexts_is_a_setting(make, tmp_path):
    def scores(limit, store):
        scorer = make(variant="plus", max_context_tokens=limit, store=store)
        return scorer.score(**arguments(CASES[:1])).scores

    fresh = {limit: scores(limit, False) for limit in (2, 2048, None)}
    assert fresh[2048] == fresh[None] != fresh[2]
    for limit in (2, 2048, None, 2):  # Stored ones are told apart.
        assert scores(limit, tmp_path) == fresh[limit]


# paper

BERLIN = "She quickly took the old train to Berlin."
PAPER_ROWS = [
    ("She took a slow train.", [BERLIN, "Nobody won the old game."], "Her sister took the train."),
    ("A train.", ["The very old train came late. #late https://a.b/c"], ""),
    ("It rained.", ["The rain came late again."], f"{LONG} It rained again."),
]


@pytest.fixture
def writer(wide_models):
    """A language model that writes other texts when a constant of the planner changes."""
    return wide_models["language_model"]


def prepared(text):
    return text.removesuffix(" #late https://a.b/c")


LONG_STEP = {"plan_step": 0.5, "plan_iterations": 1}  # It changes what is written.


@pytest.mark.parametrize(
    ("settings", "tenths", "q"),
    [
        ({}, (2, 4, 6), 0.8),
        ({"max_mask_ratio": 0.4, "planner": "none", "reference_aggregation": "mean", "q": 0.5}, (2, 4), 0.5),
        ({"mask_ratio_step": 0.5, "use_context": False, "sigma": 0, **LONG_STEP}, (5,), 0.8),
        ({"idf_corpus": ["They win.", "A train is a train.", "The end."], "planner": "none"}, (2, 4, 6), 0.8),
    ],
    ids=["defaults", "mean", "no context", "corpus"],
)
def test_paper_equals_the_oracle(models, make, writer, pipeline, settings, tenths, q):
    config = SimpleNamespace(**{**vars(oracle_forms.INFILLING), **settings})
    rows, expected = PAPER_ROWS[:2] if settings else PAPER_ROWS, []
    corpus = settings.get("idf_corpus") or sorted({prepared(text) for row in rows for text in row[1]})
    for candidate, references, context in rows:
        context = context if settings.get("use_context", True) else ""
        texts = [prepared(text) for text in references]
        shown = [oracle_forms.templates(text, context, corpus, pipeline, tenths) for text in texts]
        written = [
            [text, *(infilled(writer, config, context, text, template) for template in templates)]
            for text, templates in zip(texts, shown, strict=True)
        ]
        scores = oracle_forms.paper(models["encoder"], candidate, written, q)
        mean = settings.get("reference_aggregation") == "mean"
        expected.append((sum(scores) / len(scores) if mean else max(scores), shown, written))
    orders = [(2, [1, 0])] if settings else [(2, [2, 1, 0]), (17, [0, 1, 2, 2, 0])]
    for size, order in orders:
        scorer = make(variant="paper", language_model=writer, batch_size=size, **settings)
        result = scorer.score(*columns([rows[row] for row in order]))
        assert "|variant:paper|" in str(result.signature)
        for row, (score, shown, written) in zip(result.row_scores, [expected[row] for row in order], strict=True):
            augmented = [reference.augmented for reference in row.references]
            assert [list(reference.texts) for reference in augmented] == written
            assert [[infill.template for infill in reference.infills] for reference in augmented] == shown
            ratios = {infill.mask_ratio for reference in augmented for infill in reference.infills}
            assert ratios == {tenth / 10 for tenth in tenths}
            assert row.score == pytest.approx(score, abs=1e-9)


# Words and the numbers of texts out of twenty that have them, such that the two weights of the tags that compete
# are near each other: the one is a little larger with the first numbers, the other with the second.
COMPETING = [
    {"old": 2, "boat": 8, "slowly": 4, "Berlin": 10, "city": 11},
    {"old": 6, "boat": 20, "slowly": 10, "Berlin": 11, "city": 10},
]


@pytest.mark.parametrize("counts", COMPETING)
def test_the_weights_of_tags(make, pipeline, counts):
    references = ["The old boat came.", "The boat came slowly.", "Berlin saw the city."]
    corpus = [" ".join([f"n{text}", *(word for word in counts if text < counts[word])]) for text in range(20)]
    scorer = make(variant="paper", idf_corpus=corpus, planner="none", max_mask_ratio=0.2)
    rows = scorer.score(["A boat."] * 3, references, [""] * 3).row_scores
    for reference, row in zip(references, rows, strict=True):
        assert len(pipeline(reference)) == 5
        [infill] = row.references[0].augmented.infills
        assert [infill.template] == oracle_forms.templates(reference, "", corpus, pipeline, [2])


def test_words_of_the_context_cost_ten_times_as_much(make, pipeline):
    """Three fifths of the words pay for nothing, for one word of the context, and for other words."""
    text = "they walk to see the old boats and books by a river near our city library today"
    rows = [(" ".join(text.split()[:count]), text) for count in (15, 17)]
    rows.append((" ".join(text.split()[:12]), "A boat."))
    result = make(variant="paper", planner="none").score(["A boat."] * 3, *columns(rows))
    corpus = [reference for reference, _ in rows]
    for (reference, context), row in zip(rows, result.row_scores, strict=True):
        shown = [infill.template for infill in row.references[0].augmented.infills]
        assert shown == oracle_forms.templates(reference, context, corpus, pipeline)


def test_the_constants_of_the_planner(make, writer, pipeline):
    """References that are infilled with other words when one of them is a tenth smaller or larger."""
    rows = [
        ("Before the first ferry leaves, the baker opens her", "I would call a friend, or I would go"),
        ("We need more houses, and houses need roads, she", "The old harbour town wakes early in the summer."),
    ]
    for reference, context in rows:
        shown = oracle_forms.templates(reference, context, [reference], pipeline)
        written = [infilled(writer, oracle_forms.INFILLING, context, reference, template) for template in shown]
        [texts] = make(variant="paper", language_model=writer).augment([reference], [context])
        assert texts == list(dict.fromkeys([reference, *written]))
    settings = make(variant="paper").score(*columns(PAPER_ROWS[:1])).signature.to_dict()
    assert settings.items() >= vars(oracle_forms.INFILLING).items()


def test_infilling_is_given_2048_tokens_of_the_context(make, pipeline):
    with_room = tiny_models.tiny_gpt2(seed=1, n_positions=2500)
    reference, context = "She took the train home.", f"{LONG} {CAR} " * 4
    shown = oracle_forms.templates(reference, context, [reference], pipeline)
    written = [infilled(with_room, oracle_forms.INFILLING, context, reference, template) for template in shown]
    [texts] = make(variant="paper", language_model=with_room).augment([reference], [context])
    assert texts == list(dict.fromkeys([reference, *written]))
