"""The paper's score said plainly: one reference, one text at a time, and no cleverness.

Infills are given; here are perplexities, similarities and scores. The package must come within 1e-9 of these
numbers in float64.
"""

import functools
import math
from collections.abc import Callable

import torch

from mars_score.metrics.paper import Idf, PaperConfig, Template, make_templates
from mars_score.models.tagger import Tagger


def window(model) -> int:
    """Positions that can be used; RoBERTa's begin after the padding's."""
    unused = model.config.pad_token_id + 1 if model.config.model_type == "roberta" else 0
    return model.config.max_position_embeddings - unused


def logits_of(model, ids: list[int]) -> torch.Tensor:
    """Logits after each of ``ids``, without a cache."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0]
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def perplexity(model, prompt: list[int], written: list[int]) -> float:
    """Of ``written``, given what is before it; the prompt's own tokens do not count."""
    ids = prompt + written
    log_probabilities = torch.log_softmax(logits_of(model, ids), -1)
    total = sum(log_probabilities[i - 1, ids[i]].item() for i in range(len(prompt), len(ids)))
    return math.exp(-total / len(written))


@functools.cache
def cosine(encoder, first: str, second: str) -> float:
    a, b = (encoder.encode([text], convert_to_tensor=True)[0].double() for text in (first, second))
    return ((a @ b) / (a.norm() * b.norm())).item()


def weighted(similarities: list[float], q: float) -> float:
    """The mean with weights a, a*q, a*q**2, ..."""
    powers = [q**i for i in range(len(similarities))]
    return sum(power * value for power, value in zip(powers, similarities, strict=True)) / sum(powers)


def reference_score(encoder, candidate: str, references: list[str], q: float) -> float:
    """A candidate's similarity with the human reference (the first) and its infills."""
    if not candidate.strip():
        return 0.0
    return weighted([cosine(encoder, candidate.strip(), reference) for reference in references], q)


def oracle_templates(rows, config: PaperConfig, tagger: Tagger) -> list[list[tuple[str, list[Template]]]]:
    """Of rows ``(candidate, references, context)`` each prepared reference and its templates."""
    prepared = [[text.strip() for text in row[1]] for row in rows]  # without URLs and hashtags
    corpus = config.idf_corpus or [text for texts in prepared for text in texts]
    idf = Idf.count(tagger.words(corpus, lower=config.lower_words).values())
    templates = []
    for (_, _, context), texts in zip(rows, prepared, strict=True):
        [context_words] = tagger.words([context], lower=config.lower_words).values()
        tagged = tagger.tag(texts)
        made = [make_templates(text, tagged[text], context_words, idf, config) for text in texts]
        templates.append([(text, [t for _, t in pairs]) for text, pairs in zip(texts, made, strict=True)])
    return templates


def oracle_scores(
    rows,
    templates: list[list[tuple[str, list[Template]]]],
    fill: Callable[[str, Template], str],
    encoder,
    config: PaperConfig,
) -> list[float]:
    """Scores of rows ``(candidate, references, context)``, with the templates of ``oracle_templates``.

    ``fill`` gives the text of a template after a context; one without blanks is the reference.
    """
    scores = []
    for (candidate, _, context), references in zip(rows, templates, strict=True):
        row_scores = []
        for reference, row_templates in references:
            texts = [reference, *(fill(context, t) if t.blanks else reference for t in row_templates)]
            row_scores.append(reference_score(encoder, candidate, texts, config.q))
        take_best = config.reference_aggregation == "max"
        scores.append(max(row_scores) if take_best else sum(row_scores) / len(row_scores))
    return scores
