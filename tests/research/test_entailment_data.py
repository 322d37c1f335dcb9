"""What NLI models learn from: labels, passages, and that nothing is learned from which a model is measured."""

import math
import random
from collections import Counter
from pathlib import Path

import pytest
import torch

from mars_score.models.nli import pack
from mars_score.sentences import sentences
from research.entailment import pairs, train
from research.entailment.average import average
from research.entailment.marks import MARK
from research.entailment.pairs import (
    CONSISTENCY,
    LABELS,
    NOT_CONTRADICTION,
    NOT_ENTAILMENT,
    PUBLIC,
    REFERENCES,
    Group,
    Passages,
    Statement,
    public_groups,
    rated_groups,
    rated_statements,
    reworded_groups,
    with_surfaces,
    written_groups,
)
from research.entailment.unseen import RUN, is_unseen, measured_runs
from tests import jsonl, tiny_models

CONTRADICTION, ENTAILMENT, NEUTRAL = LABELS
NUMBERS = [
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    "last",
]
FOLDER = Path(pairs.__file__).parent


@pytest.fixture
def unchanged(monkeypatch):
    """No surface is changed."""
    monkeypatch.setattr(pairs, "changed", lambda text, rng: text)


def relations(groups):
    """Triples of a premise, a hypothesis and its label, with those of twins."""
    for group in groups:
        assert len(group.hypotheses) == len(group.labels)
        for follows, contradicts in group.twins:
            assert (group.labels[follows], group.labels[contradicts]) == (ENTAILMENT, CONTRADICTION)
        yield from (
            (group.premise, text, label) for text, label in zip(group.hypotheses, group.labels, strict=True)
        )


# Passages

LONG = " ".join(f"Part {number} has four words." for number in NUMBERS)  # sentences of five words


def test_a_short_context_is_the_premise_of_all_its_statements():
    items = [Statement("a", ENTAILMENT), Statement("b", NEUTRAL), Statement("c", CONTRADICTION)]
    passages = Passages({LONG: {"a": 0, "b": 9}})
    assert list(passages.groups(LONG, items, 65, [("a", "c")])) == [
        Group(LONG, ("a", "b", "c"), (ENTAILMENT, NEUTRAL, CONTRADICTION), ((0, 2),))
    ]


def test_statements_of_a_long_context_stand_with_the_passage_that_is_nearest():
    """Those of which nothing is known, with the whole; twins that are parted are none."""
    parts = sentences(LONG)
    items = [Statement(text, label) for text, label in zip("abcde", [*LABELS, ENTAILMENT, NEUTRAL], strict=True)]
    passages = Passages({LONG: {"a": 1, "b": 1, "c": 11, "d": 11}})
    found = list(passages.groups(LONG, items, 15, [("b", "a"), ("d", "a"), ("e", "c")]))
    assert found == [
        Group(" ".join(parts[:3]), ("a", "b"), (CONTRADICTION, ENTAILMENT), ((1, 0),)),
        Group(" ".join(parts[10:]), ("c", "d"), (NEUTRAL, ENTAILMENT)),
        Group(LONG, ("e",), (NEUTRAL,)),
    ]


# Texts that were written


def written(name):
    return {
        "context": f"The context of {name} has one sentence here. A second sentence of {name} is there, too.",
        **{
            kind: [f"{kind} {name} {number} it is" for number in range(3)]
            for kind in ("supported", "contradicted")
        },
        "neutral": [f"neutral {name} {number} it is" for number in range(2)],
    }


WRITTEN = [written("first"), written("other")]


@pytest.mark.usefixtures("unchanged")
def test_labels_of_written_contexts():
    """Of a context's sentences by the context, and by each other."""
    seen = Counter()
    for seed in range(30):
        for premise, text, label in relations(written_groups(WRITTEN, Passages({}), random.Random(seed))):
            [row] = [row for row in WRITTEN if premise in str(row["context"]) or _holds(row, premise)]
            by_context = premise == row["context"]
            expected = _by_context(row, text) if by_context else _by_sentences(row, premise, text)
            assert label == expected, (premise, text)
            seen[by_context, label] += 1
    kinds = [*LABELS, NOT_ENTAILMENT]
    assert seen.keys() == {*((True, label) for label in kinds), *((False, label) for label in LABELS)}


def _holds(row, premise):
    return any(text in premise for kind in ("supported", "contradicted") for text in row[kind])


def _by_context(row, text):
    if text in row["supported"] or text in sentences(row["context"]):
        return ENTAILMENT
    if text in row["contradicted"]:
        return CONTRADICTION
    shuffled = any(sorted(text.split()) == sorted(other.split()) for other in row["supported"])
    return NOT_ENTAILMENT if shuffled else NEUTRAL


def _by_sentences(row, premise, text):
    """Number 1 of the supported sentences and number 1 of the contradicted ones are about the same fact."""
    if text in premise:
        return ENTAILMENT
    twins = [*zip(row["supported"], row["contradicted"], strict=True)]
    denied = {one for both in twins for one, other in (both, both[::-1]) if other in premise}
    return CONTRADICTION if text in denied else NEUTRAL


def reworded(task, **more):
    names = {"paraphrases": ["same 1", "same 2"], "contradicted": ["wrong 1", "wrong 2"]}
    return {"task": task, "reference": "same 0", **names, "others": ["other 0", "other 1"], **more}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("row", "has_context"),
    [
        (reworded("report", context="context"), True),
        *((reworded(task, context="context"), False) for task in ("story (ending)", "reply in a dialogue")),
        (reworded("caption"), False),
    ],
)
def test_labels_of_reworded_references(row, has_context):
    """The context says what the reference does not; a story goes on, and a reply need not follow."""
    seen = set()
    for seed in range(20):
        for premise, text, label in relations(reworded_groups([row], random.Random(seed))):
            kinds = premise.split()[0], text.split()[0]
            expected = {
                ("same", "same"): ENTAILMENT,
                ("same", "wrong"): CONTRADICTION,
                ("wrong", "same"): CONTRADICTION,
                ("context", "same"): ENTAILMENT,
                ("context", "wrong"): CONTRADICTION,
                ("context", "other"): ENTAILMENT,
            }.get(kinds, NEUTRAL)
            assert label == (ENTAILMENT if premise == text else expected)
            seen.add(kinds)
    assert {kinds[0] for kinds in seen} == {"same", "wrong", "other", *(["context"] if has_context else [])}


ROWS = {"supported": 3, "contradicted": 3, "neutral": 2}
REWORDED = {"paraphrases": 2, "contradicted": 2}


@pytest.mark.parametrize(
    ("name", "source", "wanted"),
    [("written", "context", ROWS), ("reworded", "reference", REWORDED), ("details", "reference", REWORDED)],
)
def test_the_written_rows_are_whole(name, source, wanted):
    """They have all their texts, which differ, and groups can be made of them."""
    rows = pairs.read_rows(FOLDER / f"{name}.jsonl")
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert {kind: len(row[kind]) for kind in wanted} == wanted, row["id"]
        said = [row[source], *row.get("others", []), *(text for kind in wanted for text in row[kind])]
        assert all(text.strip() for text in said), row["id"]
        assert len(set(said)) == len(said), row["id"]
    rng, some = random.Random(0), rows[::20]
    groups = written_groups(some, Passages({}), rng) if name == "written" else reworded_groups(some, rng)
    assert {label for _, _, label in relations(groups)} >= set(LABELS)


# Rated texts


@pytest.fixture
def rated(tmp_path):
    """A file of each set with references: two contexts, and candidates of which one is consistent."""
    for name in REFERENCES:
        rows = [
            {
                "context": f"{name} {context}.",
                "references": [f"{name} says this. It says that.", f"{name} says more."],
                "candidate": f"{name} {kind} first. And {kind} second.",
                "ratings": {"consistency": rating} if name in CONSISTENCY else {},
            }
            for context in ("a", "b")
            for kind, rating in (("good", 5.0), ("fair", 4.0), ("bad", 2.0))
        ]
        jsonl.write(tmp_path / f"{name}.jsonl", rows)
    return tmp_path


def test_what_ratings_say_of_texts(rated):
    """Consistent texts follow, sentence by sentence; references fit; of those between nothing is known."""
    found = rated_statements(rated)
    assert found.keys() == {f"{name} {context}." for name in REFERENCES for context in ("a", "b")}
    for context, items in found.items():
        name = context.split()[0]
        expected = [
            Statement(text, NOT_CONTRADICTION)
            for text in (f"{name} says this.", "It says that.", f"{name} says more.")
        ]
        if name in CONSISTENCY:
            good = f"{name} good first.", "And good second.", f"{name} good first. And good second."
            expected += [Statement(text, ENTAILMENT) for text in good]
            expected.append(Statement(f"{name} bad first. And bad second.", NOT_ENTAILMENT))
        assert sorted(items) == sorted(expected)


def test_groups_of_rated_texts(rated):
    """By their context; consistent ones, and other references, by a reference, which contradicts none."""
    statements = rated_statements(rated)
    by_context, by_reference = {}, set()
    for group in rated_groups(statements, rated, Passages({}), random.Random(0)):
        if group.premise in statements:
            by_context[group.premise] = [*map(Statement, group.hypotheses, group.labels)]
            continue
        assert set(group.labels) == {NOT_CONTRADICTION}
        assert not set(group.hypotheses) & set(sentences(group.premise))
        name = group.premise.split()[0]
        assert any("good" in text for text in group.hypotheses)
        assert all(
            text.startswith((name, "And good", "It says")) and "bad" not in text for text in group.hypotheses
        )
        by_reference.add(name)
    assert {context: sorted(items) for context, items in by_context.items()} == {
        context: sorted(items) for context, items in statements.items()
    }
    assert by_reference == set(CONSISTENCY)


def test_people_s_pairs_are_drawn_by_premise(tmp_path):
    """Up to a number of pairs, and nine of a premise."""
    for name in PUBLIC:
        rows = [
            {"premise": f"{name} {premise}", "hypothesis": f"{premise} {number}", "label": LABELS[number % 3]}
            for premise in range(30)
            for number in range(12)
        ]
        jsonl.write(tmp_path / f"{name}.jsonl", rows)
    share = 45 / max(PUBLIC.values())
    drawn = [list(public_groups(tmp_path, random.Random(seed), share)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    by_set = Counter()
    for group in drawn[0]:
        name, premise = group.premise.split()
        assert group.hypotheses == tuple(f"{premise} {number}" for number in range(9))
        assert group.labels == LABELS * 3
        by_set[name] += 9
    for name, number in PUBLIC.items():
        assert number * share <= by_set[name] < number * share + 9


def test_surfaces_change_and_labels_stay():
    group = Group(LONG, tuple(f"It is {number} o'clock." for number in NUMBERS), (NEUTRAL,) * 13, ((0, 1),))
    made = list(with_surfaces([group] * 100, random.Random(0)))
    assert all((one.labels, one.twins) == (group.labels, group.twins) for one in made)
    texts = [(text, before) for one in made for text, before in zip(one.hypotheses, group.hypotheses, strict=True)]
    assert 0.25 < sum(text != before for text, before in texts) / len(texts) <= 0.4
    assert 0 < sum(one.premise != LONG for one in made) < 40


# What is measured is not learned


@pytest.fixture
def measured(tmp_path):
    """The runs of two sets: of a context, a candidate and a reference of thirteen words each."""
    for name, words in (("one", NUMBERS), ("two", NUMBERS[::-1])):
        context, candidate, reference = (" ".join(f"{kind}-{word}" for word in words) for kind in "abc")
        row = {"context": context, "candidate": candidate, "references": ["Short.", reference]}
        jsonl.write(tmp_path / f"{name}.jsonl", [row])
    return measured_runs(tmp_path)


@pytest.mark.parametrize("place", ["premise", "hypothesis"])
@pytest.mark.parametrize("kind", ["a", "b", "c"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_group_that_shares_twelve_words_with_what_is_measured_is_found(measured, place, kind, order):
    """Of a context, a candidate or a reference, wherever it stands; letters' case and signs do not count."""
    words = [word for number in NUMBERS[::order] for word in (kind, number)]

    def unseen(shared):
        text = f"New, {' '.join(shared).upper()}! And more"
        texts = (text, "Another.") if place == "premise" else ("Another.", text)
        return is_unseen(Group(texts[0], ("A first.", texts[1]), (NEUTRAL, NEUTRAL)), measured)

    assert RUN == 12
    assert not unseen(words[:12])
    assert not unseen(words[5:17])
    assert unseen(words[:11])
    assert unseen([*words[:6], "else", *words[6:17]])
    assert unseen(words[11::-1])


def test_short_texts_are_no_runs(tmp_path):
    jsonl.write(tmp_path / "one.jsonl", [{"context": "A b.", "candidate": "", "references": []}])
    assert measured_runs(tmp_path) == frozenset()
    assert is_unseen(Group("A b.", ("",), (NEUTRAL,)), frozenset())


def test_a_folder_without_sets_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("one")
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(FileNotFoundError, match=rf"^{folder} holds no rated sets"):
            measured_runs(folder)


# Training


def test_texts_are_learned_as_a_score_reads_them(monkeypatch):
    """Without hypotheses that state nothing; their twins go, too."""
    monkeypatch.setattr(train, "CLEAN", 1.0)
    texts = ("Yes, it is **new**", "[1]", "it is old!", "It is not new")
    labels = (ENTAILMENT, NEUTRAL, NOT_ENTAILMENT, CONTRADICTION)
    read = train.as_read(Group("It is <b>new</b>.", texts, labels, ((0, 3), (0, 1))), random.Random(0))
    assert read == Group(
        "It is new.",
        ("It is new.", "It is old.", "It is not new."),
        (ENTAILMENT, NOT_ENTAILMENT, CONTRADICTION),
        ((0, 2),),
    )


def test_ids_are_those_that_a_score_gives_the_model():
    tokenizer = tiny_models.roberta_tokenizer()
    groups = [Group("The road is new.", ("It is new.", "It<unk> is old."), (ENTAILMENT, CONTRADICTION), ((0, 1),))]
    [(group, tokens)] = train.encoded(groups, tokenizer)
    assert group == groups[0]
    assert tokens.premise == tokenizer("The road is new.")["input_ids"]
    assert tokens.hypotheses == [tokenizer(text)["input_ids"] for text in ("It is new.", "It is old.")]


def test_tokens_of_marked_words_are_wrong():
    tokenizer = tiny_models.roberta_tokenizer()
    texts = ("The road is new.", f"The {MARK}unbelievable road is {MARK}old.")
    [(_, tokens)] = train.encoded([Group("x", texts, (ENTAILMENT, CONTRADICTION))], tokenizer)
    ids = tokenizer("The unbelievable road is old.")["input_ids"]
    assert tokens.hypotheses[1] == ids
    assert not any(tokens.wrong[0])
    words = [
        [one for one, is_wrong in zip(ids, tokens.wrong[1], strict=True) if is_wrong is flag]
        for flag in (True, False)
    ]
    assert tokenizer.decode(words[0]).split() == ["unbelievable", "old."]
    assert tokenizer.decode(words[1], skip_special_tokens=True).split() == ["The", "road", "is"]


def test_long_groups_are_parted_and_long_texts_cut():
    tokenizer = tiny_models.roberta_tokenizer()
    hypotheses = tuple(f"The {number} road is new. " * 40 for number in NUMBERS[:4])
    found = train.encoded([Group("old " * 999, hypotheses, (*LABELS, NOT_ENTAILMENT))], tokenizer)
    assert [group.labels for group, _ in found] == [LABELS[:2], (LABELS[2], NOT_ENTAILMENT)]
    assert [text for group, _ in found for text in group.hypotheses] == list(hypotheses)
    for _, tokens in found:
        assert len(tokens.premise) == train.PREMISE_TOKENS
        assert {len(part) for part in (*tokens.hypotheses, *tokens.wrong)} == {train.HYPOTHESIS_TOKENS}
        assert all(ids[-1] == tokenizer.eos_token_id for ids in (tokens.premise, *tokens.hypotheses))


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        *((label, [label]) for label in LABELS),
        (NOT_ENTAILMENT, [CONTRADICTION, NEUTRAL]),
        (NOT_CONTRADICTION, [ENTAILMENT, NEUTRAL]),
    ],
)
def test_the_loss_of_a_label_is_that_of_all_classes_that_it_allows(label, allowed):
    logits = torch.tensor([[0.5, -1.0, 2.0]])
    shares = dict(zip(LABELS, torch.softmax(logits, -1)[0], strict=True))
    expected = -torch.log(sum(shares[name] for name in allowed))
    torch.testing.assert_close(train.loss(logits, [Group("", ("a",), (label,))], 0.5), expected)


def test_the_loss_of_twins_is_that_of_the_difference_of_their_margins():
    logits = torch.tensor([[0.0, 0.0, 0.0], [1.0, 3.0, 0.5], [2.0, 0.5, 0.1]])  # margins 0, 2 and -1.5
    groups = [Group("", ("x",), (NEUTRAL,)), Group("", ("a", "b"), (ENTAILMENT, CONTRADICTION), ((0, 1),))]
    without = [group._replace(twins=()) for group in groups]
    added = train.loss(logits, groups, 0.5) - train.loss(logits, without, 0.5)
    torch.testing.assert_close(added, 0.5 * torch.log1p(torch.exp(torch.tensor(-3.5))))


def word_loss(logits, group, wrong, weight=0.0):
    """The loss of a group's words; logits of its hypotheses' tokens, without those that open and end a text."""
    wrong = [[False, *marks, False] for marks in wrong]
    tokens = train.Tokens([0, 2], [list(range(len(marks))) for marks in wrong], wrong)
    packed = pack([(tokens.premise, tokens.hypotheses)], 1)
    opened = [value for row in logits for value in (9.0, *row, 9.0)]
    return train.word_loss(torch.tensor([[5.0, 5.0, *opened]]), packed, [(group, tokens)], weight)


def cross_entropy(logit, target):
    return math.log1p(math.exp(-logit if target else logit))


def test_the_loss_of_words_that_follow_is_that_of_the_largest_and_of_all():
    logits = [[-1.0, 2.0, 0.5]]
    expected = cross_entropy(2.0, 0) + sum(cross_entropy(one, 0) for one in logits[0]) / 3
    found = word_loss(logits, Group("", ("a",), (ENTAILMENT,)), [[False] * 3])
    assert found.item() == pytest.approx(expected)


def test_the_loss_of_marked_words_is_apart_from_that_of_the_others():
    logits = [[-1.0, 2.0, 0.5, 1.5]]
    wrong = (cross_entropy(2.0, 1) + (cross_entropy(2.0, 1) + cross_entropy(-1.0, 1)) / 2) / 2
    right = (cross_entropy(1.5, 0) + (cross_entropy(0.5, 0) + cross_entropy(1.5, 0)) / 2) / 2
    found = word_loss(logits, Group("", ("a",), (CONTRADICTION,)), [[True, True, False, False]])
    assert found.item() == pytest.approx(wrong + right)


@pytest.mark.parametrize("label", [CONTRADICTION, NEUTRAL, NOT_ENTAILMENT])
def test_the_largest_word_is_wrong_where_none_is_marked(label):
    found = word_loss([[-1.0, 2.0]], Group("", ("a",), (label,)), [[False] * 2])
    assert found.item() == pytest.approx(cross_entropy(2.0, 1))


def test_nothing_is_learned_of_the_words_of_what_may_or_may_not_follow():
    group = Group("", ("a", "b"), (NOT_CONTRADICTION, ENTAILMENT))
    found = word_loss([[3.0, 2.0], [0.0]], group, [[False] * 2, [False]])
    assert found.item() == pytest.approx(2 * math.log(2))


def test_the_largest_words_of_twins_are_told_apart():
    group = Group("", ("a", "b"), (ENTAILMENT, CONTRADICTION), ((0, 1),))
    logits, wrong = [[-1.0, 0.5], [1.0, 3.0]], [[False] * 2, [False, True]]
    added = word_loss(logits, group, wrong, 0.5) - word_loss(logits, group._replace(twins=()), wrong, 0.5)
    assert added.item() == pytest.approx(0.5 * cross_entropy(2.5, 1), rel=1e-4)


def test_the_mean_of_differences_is_that_of_their_products():
    """Whole tensors are averaged; those that one of them lacks are taken from the other."""
    generator = torch.Generator().manual_seed(0)
    before, after = (
        {
            "a.up": random_matrix(5, 2, generator),
            "a.down": random_matrix(2, 4, generator),
            "b": torch.ones(2) * number,
        }
        for number in (1, 3)
    )
    after["words"] = torch.ones(1)
    mean = average(before, after, 0.25, 4)
    products = [one["a.up"] @ one["a.down"] for one in (before, after)]
    torch.testing.assert_close(mean["a.up"] @ mean["a.down"], 0.75 * products[0] + 0.25 * products[1])
    assert mean["b"].tolist() == [1.5, 1.5]
    assert mean["words"].tolist() == [1.0]
    cut = average(before, after, 0.25, 2)
    assert cut["a.up"].shape == (5, 2)
    assert torch.linalg.matrix_rank(cut["a.up"] @ cut["a.down"]) == 2


def random_matrix(rows, columns, generator):
    return torch.rand(rows, columns, generator=generator, dtype=torch.float64)
