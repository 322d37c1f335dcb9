"""The paper's naive baseline: a masked language model fills one mask token per masked token, all at once.

    python -m research.naive DATA/*.jsonl --model FacebookAI/roberta-base --preset mini

Prints Pearson's r with human ratings by set. Masks, contexts and the score are those of variant ``paper``, with
the preset's encoder. No masked language model is known to come as a wheel: docs/paper.md has no figures of it.
"""

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.sequential import allowed_tokens, cut_context, decode, fit, is_whole, tokenise
from mars_score.data.validation import Row
from mars_score.infilling.augmenter import prepare_rows
from mars_score.meta.metrics.base import Models
from mars_score.meta.rated import read_rated_sets
from mars_score.metrics.idf import Idf
from mars_score.metrics.template import Template, make_templates
from mars_score.models.running import position_limit
from mars_score.models.tagger import WordAnalyser
from mars_score.settings import Settings
from mars_score.settings.stages import InfillingSettings


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", help="rated candidates, as for mars meta")
    options.add_argument(
        "--model", required=True, help="a masked language model of transformers: Hub id or folder"
    )
    options.add_argument("--preset", default="mini", help="whose encoder compares the texts")
    args = options.parse_args()
    import transformers

    model = transformers.AutoModelForMaskedLM.from_pretrained(args.model).eval()
    masked = model, transformers.AutoTokenizer.from_pretrained(args.model)
    models = Models(preset=args.preset, variant="paper")
    print("| set | candidates | naive |\n|---|---:|---:|")
    for rated in read_rated_sets(args.files):
        rated = rated.where([bool(row.candidate) for row in rated.rows])
        values = scores(rated.rows, rated.corpus, models.settings, masked, models.encoder())
        print(f"| {rated.name} | {len(values)} | {np.corrcoef(values, rated.ratings)[0, 1]:.3f} |")


def scores(
    rows: Sequence[Row], corpus: Sequence[str], settings: Settings, masked: tuple[Any, Any], encoder: Any
) -> list[float]:
    """One score per row, by a masked language model with its tokenizer; IDF is counted over ``corpus``."""
    rows, analyser = prepare_rows(rows, settings.masking), WordAnalyser()
    analyses = analyser.analyse([*(text for row in rows for text in row.references), *corpus])
    idf = Idf.count([analyses[text].lower_words for text in dict.fromkeys(corpus)])
    words = analyser.words([row.context for row in rows])
    texts: dict[tuple[str, str], list[str]] = {}  # a reference and its augmentations, by context and reference
    for row in rows:
        for reference in row.references:
            if (row.context, reference) not in texts:
                templates = make_templates(analyses[reference], words[row.context], idf, settings.masking)
                filled = [fill(row.context, template, *masked, settings.infilling) for _, template in templates]
                texts[row.context, reference] = [reference, *filled]
    q = settings.similarity.q

    def similarity(candidate: str, compared: list[str]) -> float:
        """Eq. 7."""
        vectors = encoder.encode([candidate, *compared], normalize_embeddings=True)
        return float(np.average(vectors[1:] @ vectors[0], weights=[q**place for place in range(len(compared))]))

    return [max(similarity(row.candidate, texts[row.context, one]) for one in row.references) for row in rows]


def fill(context: str, template: Template, model: Any, tokenizer: Any, infilling: InfillingSettings) -> str:
    """A template with the most likely tokens in its blanks that make whole characters, if any do."""
    if not template.blanks:
        return template.reference
    window = (position_limit(model) or 512) - 1  # one position is the closing token's
    before = [
        tokenizer.cls_token_id,
        *cut_context(context, template.reference, window, tokenizer, infilling),
    ]
    pieces = fit(tokenise(template, tokenizer, after_context=len(before) > 1), len(before), window, extra=0)
    ids = [tokenizer.mask_token_id if piece.blank else token for piece in pieces for token in piece.ids]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*before, *ids, tokenizer.sep_token_id]])).logits[0]
    infills, position = [], len(before)
    for piece in pieces:
        for whole in (False, True) if piece.blank else ():
            chosen = []
            for place, of_token in enumerate(logits[position : position + len(piece.ids)]):
                opening = None if place else piece.text
                allowed = allowed_tokens(tokenizer, len(of_token), template.reference, opening, whole=whole)
                chosen.append(int(of_token.masked_fill(~allowed, -math.inf).argmax()))
            if whole or is_whole(decode(tokenizer, chosen)):
                infills.append(decode(tokenizer, chosen))
                break
        position += len(piece.ids)
    return template.fill(infills).strip()


if __name__ == "__main__":
    main()
