"""The paper's score said plainly: one reference, one blank, one token at a time, and no cleverness.

Infills are those of ``benchmarks/sequential.py``; here are the scores. The package must choose the same tokens and
come within 1e-9 of these numbers in float64.
"""

import functools
import math

import torch

from benchmarks.sequential import Infilled, SequentialInfiller
from mars_score.metrics.idf import Idf
from mars_score.metrics.template import Template, make_templates
from mars_score.models.tagger import prepare_reference
from mars_score.settings import Settings
from mars_score.settings.stages import SimilaritySettings


def window(model) -> int:
    """Positions that can be used; RoBERTa's begin after the padding's."""
    unused = model.config.pad_token_id + 1 if model.config.model_type == "roberta" else 0
    return model.config.max_position_embeddings - unused


def logits_of(model, ids: list[int]) -> torch.Tensor:
    """Logits after each of ``ids``, without a cache."""
    logits = model(input_ids=torch.tensor([ids])).logits[0]
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def perplexity(model, prompt: list[int], written: list[int]) -> float:
    """Of ``written``, given what is before it; the prompt's own tokens do not count."""
    ids = prompt + written
    log_probabilities = torch.log_softmax(logits_of(model, ids), -1)
    total = sum(log_probabilities[i - 1, ids[i]].item() for i in range(len(prompt), len(ids)))
    return math.exp(-total / len(written))


def augment(context: str, template: Template, settings: Settings) -> Infilled:
    """The augmented reference of a template, with the models (objects) of the settings."""
    context = context if settings.use_context else ""
    return SequentialInfiller(*settings.models.language_model, settings.planning, settings.infilling).infill(
        context, template
    )


@functools.cache
def cosine(encoder, first: str, second: str) -> float:
    a, b = (encoder.encode([text], convert_to_tensor=True)[0].double() for text in (first, second))
    return ((a @ b) / (a.norm() * b.norm())).item()


def weighted(similarities: list[float], q: float) -> float:
    """The mean with weights a, a*q, a*q**2, ..."""
    powers = [q**i for i in range(len(similarities))]
    return sum(power * value for power, value in zip(powers, similarities, strict=True)) / sum(powers)


def reference_score(encoder, candidate: str, references: list[str], settings: SimilaritySettings) -> float:
    """A candidate's similarity with the human reference (the first) and its augmentations."""
    if not candidate.strip():
        return 0.0
    similarities = [cosine(encoder, candidate.strip(), reference) for reference in references]
    if settings.augmentation_aggregation == "weighted":
        return weighted(similarities, settings.q)
    return 0.5 * similarities[0] + 0.5 * max(similarities)  # of the human reference and of the nearest text


def oracle_templates(rows, settings: Settings, analyser) -> list[list[tuple[str, list[Template]]]]:
    """Per row and reference the prepared reference and its templates, by ``mars_score.metrics``."""
    strip = settings.masking.strip_urls_hashtags
    prepared = [[prepare_reference(text, strip_urls_hashtags=strip) for text in row[1]] for row in rows]
    corpus = settings.masking.idf_corpus or [text for texts in prepared for text in texts]
    idf = Idf.count(analyser.words(corpus).values())
    templates = []
    for (_, _, context), texts in zip(rows, prepared, strict=True):
        [words] = analyser.words([context if settings.use_context else ""]).values()
        analyses = analyser.analyse(texts)
        made = [make_templates(analyses[text], words, idf, settings.masking) for text in texts]
        templates.append([(text, [t for _, t in pairs]) for text, pairs in zip(texts, made, strict=True)])
    return templates


def oracle_scores(rows, templates: list[list[tuple[str, list[Template]]]], settings: Settings) -> list[float]:
    """Scores of rows ``(candidate, references, context)``, with the templates of ``oracle_templates``."""
    scores = []
    for (candidate, _, context), of_references in zip(rows, templates, strict=True):
        of_row = []
        for reference, of_ratios in of_references:
            texts = [reference, *(augment(context, template, settings).text for template in of_ratios)]
            of_row.append(reference_score(settings.models.encoder, candidate, texts, settings.similarity))
        take_best = settings.similarity.reference_aggregation == "max"
        scores.append(max(of_row) if take_best else sum(of_row) / len(of_row))
    return scores
