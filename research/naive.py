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

from mars_score import MarsScorer
from mars_score.infilling.plain import allowed_tokens, cut_context, decode, encode_pieces, fit, is_whole
from mars_score.meta.rated import read_rated_sets
from mars_score.metrics.paper import Idf, PaperConfig, Template, make_templates, paper, reference_score
from mars_score.models.running import position_limit
from mars_score.models.tagger import Tagger
from mars_score.rows import Row, weighted_sum


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
    scorer = MarsScorer(args.preset, variant="paper")
    print("| set | candidates | naive |\n|---|---:|---:|")
    for rated in read_rated_sets(args.files):
        rated = rated.where([bool(row.candidate) for row in rated.rows])
        values = scores(rated.rows, rated.corpus, scorer, masked)
        print(f"| {rated.name} | {len(values)} | {np.corrcoef(values, rated.ratings)[0, 1]:.3f} |")


def scores(rows: Sequence[Row], corpus: Sequence[str], scorer: MarsScorer, masked: tuple[Any, Any]) -> list[float]:
    """Score rows with infills of a masked language model and its tokenizer; IDF is counted over ``corpus``."""
    rows, config, tagger = scorer.prepare(rows), scorer.settings.paper, Tagger()
    words = tagger.tag(text for row in rows for text in row.references)
    context_words = tagger.lower_words(row.context for row in rows)
    idf = Idf.count(tagger.lower_words(corpus).values())
    texts: dict[tuple[str, str], list[str]] = {}  # a reference and its infills, by context and reference
    for row in rows:
        for reference in row.references:
            if (row.context, reference) not in texts:
                templates = make_templates(reference, words[reference], context_words[row.context], idf, config)
                filled = [fill(row.context, template, *masked, config) for _, template in templates]
                texts[row.context, reference] = [reference, *filled]
    different = {text for row in rows for text in (row.candidate, *row.references)}
    encodings = scorer.calls.encode([*different, *(text for compared in texts.values() for text in compared)])

    def score(candidate: str, compared: Sequence[str]) -> float:
        own = encodings[candidate].vector
        return reference_score([float(encodings[text].vector @ own) for text in compared], config.q)

    return [
        weighted_sum(paper([score(row.candidate, texts[row.context, one]) for one in row.references], config))
        for row in rows
    ]


def fill(context: str, template: Template, model: Any, tokenizer: Any, config: PaperConfig) -> str:
    """Fill the blanks with the most likely tokens that make whole characters, if any do."""
    if not template.blanks:
        return template.reference
    window = (position_limit(model) or 512) - 1  # one position is the closing token's
    context_ids, _ = cut_context(context, template.reference, window, tokenizer, config)
    before = [tokenizer.cls_token_id, *context_ids]
    pieces = fit(
        encode_pieces(template, tokenizer, after_context=bool(context_ids)), window - len(before), extra=0
    )
    ids = [tokenizer.mask_token_id if piece.is_blank else token for piece in pieces for token in piece.ids]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*before, *ids, tokenizer.sep_token_id]])).logits[0]
    infills, position = [], len(before)
    for piece in pieces:
        if piece.is_blank:
            own_logits = logits[position : position + len(piece.ids)]
            infills.append(infill(own_logits, piece.text, template.reference, tokenizer))
        position += len(piece.ids)
    return template.fill(infills).strip()


def infill(logits: torch.Tensor, masked: str, reference: str, tokenizer: Any) -> str:
    """Choose the most likely token for each mask; again among tokens of whole characters if they make none."""
    text = ""
    for whole in (False, True):
        chosen = []
        for index, scores in enumerate(logits):
            opening = None if index else masked
            allowed = allowed_tokens(tokenizer, len(scores), reference, opening, whole=whole)
            chosen.append(int(scores.masked_fill(~allowed, -math.inf).argmax()))
        text = decode(tokenizer, chosen)
        if is_whole(text):
            break
    return text


if __name__ == "__main__":
    main()
