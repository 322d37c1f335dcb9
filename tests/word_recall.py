"""MARS that is easily computed by hand: the share of a reference's words in a candidate, by a tiny encoder."""

import functools

from mars_score import presets
from mars_score.scorer import MarsScorer
from tests import tiny_models
from tests.setting_values import as_options

# Settings of a scorer that computes the token recall alone.
SETTINGS = {
    "variant": "fast",
    "context_weight": 0.0,
    "repetition_penalty": 0.0,
    "support_weight": 0.0,
    "contradiction_penalty": 0.0,
}
OPTIONS = as_options(SETTINGS)


@functools.cache
def _other_models():
    return {"language_model": tiny_models.tiny_gpt2(), "entailment_model": tiny_models.tiny_nli()}


def install_models(patch, encoder=None):
    """Let preset "mini" be of tiny models, and the default.

    Args:
        patch: a MonkeyPatch.
        encoder: ``tiny_models.word_encoder()``; of a group of processes only the first can make it.

    Returns:
        A list that each call of ``MarsScorer.score_rows`` adds to: the scorer and what it scored as three lists.
    """
    patch.setitem(presets.PRESETS, "mini", {**_other_models(), "encoder": encoder or tiny_models.word_encoder()})
    patch.setenv("MARS_PRESET", "mini")
    scored, score_rows = [], MarsScorer.score_rows

    def noted(self, *arguments, **options):
        result = score_rows(self, *arguments, **options)
        texts = zip(*((one.candidate, list(one.references), one.context) for one in result.rows), strict=True)
        scored.append((self, [list(column) for column in texts]))
        return result

    patch.setattr(MarsScorer, "score_rows", noted)
    return scored
