"""Texts that a language model writes after a prompt, drawn by transformers' ``generate``."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria
from transformers.generation import StoppingCriteriaList, TemperatureLogitsWarper, TopPLogitsWarper

from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.models.codec import TextCodec, has_line_break
from mars_score.models.running import BatchSize, ordinary_mode
from mars_score.settings.stages import SamplingSettings

TEXTS_TOGETHER = 32  # that are written at once, at most; halved where memory runs out


def draw_texts(
    model: CausalLanguageModel,
    prompt: Sequence[int],
    keys: Sequence[bytes],
    token_limit: int,
    settings: SamplingSettings,
) -> list[tuple[str, bool]]:
    """Draw one text of at most ``token_limit`` tokens per key (a seed) by nucleus sampling (Holtzman et al. 2020).

    A text depends on the prompt, its key and the settings, and not on the other keys. Torch's random state is
    neither read nor changed. The model's own generation settings, such as a repetition penalty, hold beside ours.

    Returns:
        The texts, each with whether it ended by itself (a stop token or a line break) and not at the token limit.
    """
    codec = model.codec
    own = getattr(getattr(model.model, "generation_config", None), "eos_token_id", None)
    tokens = [*(own if isinstance(own, list) else [own]), codec.tokenizer.eos_token_id]
    stops = {int(token) for token in tokens if token is not None}
    padding = min(stops, default=codec.begin)
    ends = {*stops, padding}
    barred = {*(~codec.writable(model.vocabulary)).nonzero()[0].tolist()} - stops
    config = GenerationConfig(
        max_new_tokens=token_limit,
        eos_token_id=sorted(stops) or None,
        pad_token_id=padding,
        suppress_tokens=sorted(barred) or None,
        num_beams=1,
        do_sample=False,  # _Draw does it; these values of the unused settings keep transformers quiet
        temperature=1.0,
        top_p=1.0,
        top_k=50,
    )

    def draw(keys: list[bytes]) -> list[tuple[str, bool]]:
        processors = (
            TemperatureLogitsWarper(float(settings.sample_temperature)),
            TopPLogitsWarper(float(settings.sample_top_p)),
            _Draw(keys),
        )
        prompts = torch.tensor([list(prompt)] * len(keys), device=model.device)
        written = model.model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            generation_config=config,
            logits_processor=LogitsProcessorList(processors),
            stopping_criteria=StoppingCriteriaList([_LineEnds(codec, len(prompt))]),
        )
        texts = []
        for tokens in written[:, len(prompt) :].tolist():  # padded after their end
            end = next((place for place, token in enumerate(tokens) if token in ends), None)
            text = codec.decode(tokens[:end])
            texts.append((text, end is not None or has_line_break(text.lstrip())))
        return texts

    with model.exclusive(), ordinary_mode():
        return BatchSize(TEXTS_TOGETHER).map(draw, keys, len)


class _Draw(LogitsProcessor):  # type: ignore[misc]
    """Makes a draw the likeliest token: with exponential noise E, that of the largest p / E is drawn from p."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._generators = [torch.Generator().manual_seed(int.from_bytes(key[:8], "little")) for key in keys]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        noise = torch.stack(
            [torch.empty(scores.shape[1]).exponential_(generator=seeded) for seeded in self._generators]
        )
        return scores - noise.log().to(scores.device)


class _LineEnds(StoppingCriteria):  # type: ignore[misc]
    """A text ends with its first line; line breaks before any text do not count."""

    def __init__(self, codec: TextCodec, prompt_tokens: int) -> None:
        self._codec, self._start = codec, prompt_tokens

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        texts = [self._codec.decode(row) for row in input_ids[:, self._start :].tolist()]
        return torch.tensor([has_line_break(text.lstrip()) for text in texts], device=input_ids.device)
