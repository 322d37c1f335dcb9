"""What forms of the score are made of, for every rated candidate and its attacks: one JSON object per line.

The tables of ``research/forms.py`` are made from this file without any model. With ``--infills`` references are
infilled, too, and with ``--likelihood`` the language model reads every candidate. All results are in the store: a
stopped run goes on when it is started again.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import progress
from mars_score import MarsScorer
from mars_score.augment.augmented import AugmentedReference
from mars_score.augment.sampling.samples import ContextSampler, make_request
from mars_score.data.attacks import ATTACKS, attack
from mars_score.data.files import row_line
from mars_score.data.overlap import copied_share, windows
from mars_score.data.rated import RatedSet, read_rated_sets
from mars_score.data.repetition import repetition
from mars_score.data.validation import Row
from mars_score.data.words import split_words
from mars_score.errors import MarsWarning
from mars_score.scoring.evidence import EMBED, LIKELIHOOD, MATCH, Reader
from mars_score.scoring.terms import token_recall

AT_ONCE = 64  # rows whose token vectors are in memory


def main() -> None:
    """Write the features."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.add_argument("files", nargs="+", metavar="FILE.jsonl", help="rated candidates, as for mars meta")
    options.add_argument("--out", type=Path, required=True, metavar="FEATURES.jsonl")
    options.add_argument("--groups", type=int, help="groups per file, at most")
    options.add_argument("--preset", default="mini")
    options.add_argument("--store", default=None)
    options.add_argument("--infills", action="store_true", help="infill the references, as variant paper does")
    options.add_argument("--likelihood", action="store_true", help="read every candidate with the language model")
    options.add_argument(
        "--no-references", action="store_true", help="samples as they are drawn without references"
    )
    args = options.parse_args()
    with args.out.open("w", encoding="utf-8") as file:
        for data in read_rated_sets(args.files, groups=args.groups):
            progress(f"{data.name}: {len(data.items)} items")
            for line in features_of_set(data, args):
                file.write(row_line(line))


def features_of_set(data: RatedSet, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One line for every item, and one for every attack on it."""
    masking: dict[str, Any] = {"max_mask_ratio": 0.6, "idf_corpus": data.corpus} if args.infills else {}
    scorer = MarsScorer(args.preset, store=args.store, variant="fast", **masking)
    reader, sampler = Reader(scorer.settings, scorer.runtime), ContextSampler(scorer.settings, scorer.runtime)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarsWarning)
        references, contexts = [row[1] for row in data.rows], [row[2].strip() for row in data.rows]
        found = scorer.augment_references(references, contexts)
    augmented = dict(zip(((row[1], row[2]) for row in data.rows), found, strict=True))
    requests = {
        row[1:]: make_request(
            row[2].strip(), [] if args.no_references else [one.strip() for one in row[1]], scorer.settings.sampling
        )
        for row in data.rows
    }
    drawn = sampler.draw(requests.values())
    rows: list[tuple[int, str | None, Row]] = [(index, None, row) for index, row in enumerate(data.rows)]
    for kind in ATTACKS:
        attacked = attack(kind, data.rows)
        rows += [(index, kind, row) for index, row in zip(attacked.indices, attacked.rows, strict=True)]
    pairs = [(row[2].strip(), row[0].strip()) for _, _, row in rows if row[0].strip()] if args.likelihood else []
    likelihoods = reader.read(LIKELIHOOD, pairs)  # all together: each context is read once
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        samples = [drawn[requests[row[1:]]].texts for _, _, row in part]
        features = features_of(reader, [row for _, _, row in part], augmented, samples, likelihoods)
        for (index, name, row), values in zip(part, features, strict=True):
            item = data.items[index]
            yield {
                "set": data.name,
                "item": index,
                "attack": name,
                "group": item.group,
                "system": item.system,
                "rating": item.rating,
                "task": requests[row[1:]].task,
                **values,
            }


def features_of(
    reader: Reader,
    rows: Sequence[Row],
    augmented: dict[Any, tuple[AugmentedReference, ...]],
    samples: Sequence[Sequence[str]],
    likelihoods: dict[Any, Any],
) -> Iterator[dict[str, Any]]:
    """The features of each row; a blank candidate has none."""
    texts = {text for row in rows for one in augmented[row[1:]] for text in one.texts}
    texts |= {row[0].strip() for row in rows} | {text for some in samples for text in some}
    matched = reader.read(MATCH, sorted(texts))
    parts = {row[2]: windows(row[2]) for row in rows}
    whole = {context.strip() for context in parts if context.strip()}
    embedded = reader.read(EMBED, sorted(whole.union(*parts.values())))
    for (text, references, context), drawn in zip(rows, samples, strict=True):
        if not text.strip():
            yield {"blank": True}
            continue
        candidate, of_samples = matched[text.strip()], [matched[one] for one in drawn]
        compared = [[matched[one] for one in of_one.texts] for of_one in augmented[references, context]]
        human = [texts[0] for texts in compared]
        near = [embedded[part].vector for part in parts[context]]
        values: dict[str, Any] = {
            "recalls": [[token_recall(candidate.tokens, one.tokens) for one in texts] for texts in compared],
            "precisions": [[token_recall(one.tokens, candidate.tokens) for one in texts] for texts in compared],
            "cosines": [[float(candidate.vector @ one.vector) for one in texts] for texts in compared],
            "context_nearest": max((float(candidate.vector @ part) for part in near), default=None),
            "closeness": [max(float(one.vector @ part) for part in near) for one in human] if near else [],
            "context_whole": float(candidate.vector @ embedded[context.strip()].vector) if near else None,
            "context_lines": context.strip().count("\n") + 1,
            "copied": copied_share(text.strip(), context.strip()),
            "sample_recalls": [token_recall(candidate.tokens, one.tokens) for one in of_samples],
            "sample_cosines": [float(candidate.vector @ one.vector) for one in of_samples],
            "expected": [max(token_recall(one.tokens, each.tokens) for each in human) for one in of_samples],
            "repetition": repetition(text.strip()),
            "reference_words": sum(len(split_words(one)) for one in references) / len(references),
            "candidate_words": len(split_words(text)),
        }
        if likelihoods:
            one = likelihoods[context.strip(), text.strip()]
            values |= {"given_context": one.given_context, "alone": one.alone}
        yield values


if __name__ == "__main__":
    main()
