"""Compare word lists for correcting misspellings: what is corrected, and what is changed that should stay.

    python -m research.spelling QUANTITIES FILE... [--show] [--samples 3000]

QUANTITIES contains groups with a `text`, `harmless` changes of it and `different` texts. FILE contains contexts
with sentences, or pairs, as for :mod:`research.entailment.measure`. Lists of missing packages are left
out. The columns count

- people: corrected misspellings by people: harmless changes of one word by one edit into no word
- random: corrected random edits of a word that sentence and context share
- to another: random edits that become another word
- different: texts that state something else and become equal
- written: sentences that their own context changes
- words, names: lower-case and capitalised words that a premise with one other word would change. The other words
  are those of all texts and frequent ones. Some of the words are misspelt: `--show` prints them.
"""

import argparse
import json
import random
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from rapidfuzz.distance import OSA
from wordfreq import get_frequency_dict

from mars_score.variants.judgements import spelling
from mars_score.variants.judgements.spelling import LEXICON, Lexicon, corrected
from research.entailment.measure import read
from research.results import markdown

_TOKEN = re.compile(r"(?<![\w@#./'\u2019-])[A-Za-z]{4,}(?![\w@/'\u2019-]|\.\w)")
_BESIDE = "This is a text in which we have written: {}."
Texts = Sequence[tuple[str, str]]  # premise, hypothesis


class Changed(NamedTuple):
    """A hypothesis with a misspelt word, and a premise that has the word."""

    premise: str
    right: str
    misspelt: str


def main() -> None:
    """Measure each list and print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("quantities", type=Path)
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--samples", type=int, default=3000, help="random edits (default: 3000)")
    options.add_argument("--show", action="store_true", help="print what changed")
    args = options.parse_args()
    groups = [json.loads(line) for line in args.quantities.read_text(encoding="utf-8").splitlines()]
    pairs = [(pair.premise, pair.hypothesis) for path in args.files for pair in read(path)]
    by_people, by_chance = people(groups), chance(pairs, args.samples)
    different = [(group["text"], text) for group in groups for text in group["different"]]
    types = sorted({word for pair in pairs for text in pair for word in _TOKEN.findall(text)})
    others = {**{word: word for word in frequent()}, **{word.lower(): word for word in types}}
    rows = [["list", "people", "random", "to another", "different", "written", "words", "names"]]
    for name, known in lists().items():
        spelling.LEXICON = known
        corrected.cache_clear()
        right, wrong = outcomes(by_chance)
        equal = [pair for pair in different if pair[0] == corrected(pair[1], pair[0])]
        changed = [(text, found) for premise, text in pairs if (found := corrected(text, premise)) != text]
        worst = [worst_case(types, others, known, capital=capital) for capital in (False, True)]
        rows.append(
            [
                name,
                f"{outcomes(by_people)[0]}/{len(by_people)}",
                f"{right / len(by_chance):.3f}",
                f"{wrong / len(by_chance):.4f}",
                str(len(equal)),
                f"{len(changed)}/{len(pairs)}",
                *(f"{len(found)}/{of}" for found, of in worst),
            ]
        )
        if args.show:
            print(
                f"\n{name}\n", *(f"{text} -> {found}\n" for text, found in changed), *(found for found, _ in worst)
            )
    print(markdown(rows))


def people(groups: Iterable[dict[str, list[str]]]) -> list[Changed]:
    """Return the harmless changes that are one edit of one word into no word."""
    found: list[Changed] = []
    words = [known.is_word for name, known in lists().items() if "any" not in name and "+" not in name]
    for group in groups:
        text = str(group["text"])
        for changed in group["harmless"]:
            before, after = _TOKEN.findall(text), _TOKEN.findall(changed)
            differ = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
            if len(before) != len(after) or len(differ) != 1 or OSA.distance(*differ[0]) != 1:
                continue
            if not any(is_word(differ[0][1].lower()) for is_word in words):
                found.append(Changed(text, text, changed))
    return found


def chance(pairs: Texts, samples: int) -> list[Changed]:
    """Make random edits of words that hypotheses share with their premises."""
    rng = random.Random(0)
    found: list[Changed] = []
    for premise, hypothesis in rng.sample(pairs, len(pairs)):
        shared = set(_TOKEN.findall(premise))
        words = [match for match in _TOKEN.finditer(hypothesis) if match[0] in shared and not match[0].isupper()]
        if words and len(found) < samples:
            word = rng.choice(words)
            misspelt = hypothesis[: word.start()] + edit(word[0], rng) + hypothesis[word.end() :]
            if misspelt != hypothesis:
                found.append(Changed(premise, hypothesis, misspelt))
    return found


def edit(word: str, rng: random.Random) -> str:
    """Delete, double, insert, replace or swap a letter anywhere in a word."""
    place, kind = rng.randrange(len(word)), rng.choice(("out", "double", "in", "exchange", "swap"))
    before, letter, after, new = word[:place], word[place], word[place + 1 :], rng.choice(string.ascii_lowercase)
    if kind == "swap" and after:
        return before + after[0] + letter + after[1:]
    made = {"out": before, "double": before + letter.lower() * 2, "in": before + letter + new}
    return made.get(kind, before + new) + after


def outcomes(changed: Iterable[Changed]) -> tuple[int, int]:
    """Count misspellings that are corrected, and those that become another word."""
    texts = [
        (corrected(misspelt, premise).lower(), right.lower(), misspelt.lower())
        for premise, right, misspelt in changed
    ]
    return sum(text == right for text, right, _ in texts), sum(text not in others for text, *others in texts)


def frequent() -> list[str]:
    """Return the words with a frequency of at least one per million."""
    return [word for word, share in get_frequency_dict("en").items() if share >= 1e-6 and word.isalpha()]


def worst_case(
    types: Sequence[str], others: Mapping[str, str], known: Lexicon, *, capital: bool
) -> tuple[list[str], int]:
    """Return the words that are read as one of the others with the same capitals, and the number of words."""
    of_case = [word for word in types if word[0].isupper() is capital and word[1:].islower()]
    found: list[str] = []
    for word in of_case:
        if not known.is_word(word.lower()):
            near = (others[text] for text in neighbours(word.lower()) if text in others)
            near = (text.capitalize() if capital else text for text in near)
            found += [f"{word}>{other}" for other in near if corrected(word, _BESIDE.format(other)) != word][:1]
    return found, len(of_case)


def neighbours(word: str) -> set[str]:
    """Return all strings at an edit distance of one."""
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    letters = string.ascii_lowercase
    found = {a + b[1:] for a, b in cuts if b} | {a + c + b for a, b in cuts for c in letters}
    found |= {a + c + b[1:] for a, b in cuts if b for c in letters}
    return (found | {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}) - {word}


def lists() -> dict[str, Lexicon]:
    """Return the lexicon of each word list, with and without the frequencies of wordfreq."""
    simplemma, frequency, is_foreign = _PACKAGE
    words: dict[str, Callable[[str], bool]] = {"simplemma": simplemma}
    if find_spec("spellchecker"):
        checker = import_module("spellchecker").SpellChecker(distance=1)
        words["pyspellchecker"] = frozenset(checker.word_frequency.dictionary).__contains__
    if find_spec("symspellpy"):
        path = Path(import_module("symspellpy").__file__ or "").with_name("frequency_dictionary_en_82_765.txt")
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        words["symspellpy"] = frozenset(line.split()[0] for line in lines).__contains__
    if find_spec("spylls"):
        folder = Path(import_module("spylls").__file__ or "").parent
        words["spylls"] = (
            import_module("spylls.hunspell").Dictionary.from_files(str(folder / "hunspell/data/en/en_US")).lookup
        )
    alone = {name: Lexicon(is_word, _never, is_foreign) for name, is_word in words.items()}
    return {
        **alone,
        "wordfreq (any)": Lexicon(lambda word: frequency(word) > 0, _never, is_foreign),
        "wordfreq": Lexicon(lambda word: frequency(word) >= 3, frequency, is_foreign),
        **{f"{name} + wordfreq": Lexicon(is_word, frequency, is_foreign) for name, is_word in words.items()},
        "simplemma + wordfreq (any)": Lexicon(
            lambda word: simplemma(word) or frequency(word) > 0, _never, is_foreign
        ),
    }


def _never(word: str) -> float:
    return 0.0


_PACKAGE = LEXICON

if __name__ == "__main__":
    main()
