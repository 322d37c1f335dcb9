"""What forms of the score are made of, for every rated candidate and its attacks: one JSON object a line.

The tables of ``research/forms.py`` are made from this file without any model. With ``--likelihood`` the language
model reads every candidate. What has been read is in the store; a stopped run goes on when it is started again.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import progress
from mars_score import MarsScorer
from mars_score.data.files import row_line
from mars_score.data.validation import Row
from mars_score.errors import MarsWarning
from mars_score.meta.attacks import ATTACKS, attack
from mars_score.meta.items import RatedSet, read_rated_sets
from mars_score.result import AugmentedReference
from mars_score.similarity.chunks import copied_share, windows
from mars_score.similarity.features import EMBED, LIKELIHOOD, MATCH, Reader
from mars_score.similarity.score import token_recall

AT_ONCE = 64  # rows whose token vectors are in memory


def main() -> None:
    """Write the features."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.add_argument("files", nargs="+", metavar="FILE.jsonl", help="rated candidates, as for mars meta")
    options.add_argument("--out", type=Path, required=True, metavar="FEATURES.jsonl")
    options.add_argument("--groups", type=int, help="at most so many groups a file")
    options.add_argument("--preset", default="mini")
    options.add_argument("--store", default=None)
    options.add_argument("--likelihood", action="store_true")
    args = options.parse_args()
    with args.out.open("w", encoding="utf-8") as file:
        for data in read_rated_sets(args.files, groups=args.groups):
            progress(f"{data.name}: {len(data.items)} items")
            for line in features_of_set(data, args):
                file.write(row_line(line))


def features_of_set(data: RatedSet, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One line for every item, and one for every attack on it."""
    scorer = MarsScorer(args.preset, store=args.store, idf_corpus=data.corpus)
    reader = Reader(scorer.settings, scorer.runtime)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarsWarning)
        references, contexts = [row[1] for row in data.rows], [row[2] for row in data.rows]
        found = scorer.augment_references(references, contexts)
        augmented = dict(zip(zip(references, contexts, strict=True), found, strict=True))
    rows: list[tuple[int, str | None, Row]] = [(index, None, row) for index, row in enumerate(data.rows)]
    for kind in ATTACKS:
        attacked = attack(kind, data.rows)
        rows += [(index, kind, row) for index, row in zip(attacked.indices, attacked.rows, strict=True)]
    pairs = [(row[2].strip(), row[0]) for _, _, row in rows if row[0].strip()] if args.likelihood else []
    likelihoods = reader.read(LIKELIHOOD, pairs)  # all together: each context is read once
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        features = _features(reader, [row for _, _, row in part], augmented, likelihoods)
        for (index, name, _), values in zip(part, features, strict=True):
            item = data.items[index]
            yield {
                "set": data.name,
                "item": index,
                "attack": name,
                "group": item.group,
                "system": item.system,
                "rating": item.rating,
                **values,
            }


def _features(
    reader: Reader,
    rows: Sequence[Row],
    augmented: dict[Any, tuple[AugmentedReference, ...]],
    likelihoods: dict[Any, Any],
) -> Iterator[dict[str, Any]]:
    """Of each row; a blank candidate has none."""
    texts = {text for row in rows for one in augmented[row[1:]] for text in one.texts} | {row[0] for row in rows}
    matched = reader.read(MATCH, sorted(texts))
    parts = {row[2]: windows(row[2]) for row in rows}
    whole = {context for context in parts if context.strip()}
    embedded = reader.read(EMBED, sorted(whole.union(*parts.values())))
    for candidate, references, context in rows:
        if not candidate.strip():
            yield {"blank": True}
            continue
        of_candidate = matched[candidate]
        compared = [[matched[text] for text in one.texts] for one in augmented[references, context]]
        near = [float(of_candidate.vector @ embedded[part].vector) for part in parts[context]]
        values: dict[str, Any] = {
            "recalls": [[token_recall(of_candidate.tokens, one.tokens) for one in texts] for texts in compared],
            "precisions": [[token_recall(one.tokens, of_candidate.tokens) for one in texts] for texts in compared],
            "cosines": [[float(of_candidate.vector @ one.vector) for one in texts] for texts in compared],
            "context_nearest": max(near, default=None),
            "copied": copied_share(candidate, context),
            "references_nearest": max(
                (
                    float(matched[one].vector @ embedded[part].vector)
                    for one in references
                    for part in parts[context]
                ),
                default=None,
            ),
            "context_whole": float(of_candidate.vector @ embedded[context].vector) if near else None,
            "reference_words": sum(len(one.split()) for one in references) / len(references),
            "candidate_words": len(candidate.split()),
        }
        if likelihoods:
            one = likelihoods[context.strip(), candidate]
            values |= {"given_context": one.given_context, "alone": one.alone}
        yield values


if __name__ == "__main__":
    main()
