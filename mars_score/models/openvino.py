"""OpenVINO in torch's place for reading on a CPU, with weights and activations of 8 bits.

Each text is padded to a length that depends on it alone, the next multiple of ``STEP``, and read beside texts of
the same length. So its numbers do not depend on its batch: another length would change last digits, and rounding
to 8 bits would make more of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import openvino
import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask
from transformers.modeling_outputs import BaseModelOutputWithPooling

from mars_score.errors import UnsupportedModelError, warn
from mars_score.models.attention import Feed, NewStates, mars_attention
from mars_score.models.causal_lm import PROMPT_BYTES, CausalLanguageModel, PromptMemory
from mars_score.models.kv_cache import KeyValueCache, LayerStates
from mars_score.models.running import position_limit
from mars_score.models.wheels import stored_folder

T = TypeVar("T")
GROUPED = "mars-grouped"  # the name of an attention
STEP = 16  # lengths of texts are padded to multiples of this
SLOTS = 64  # those of what is cached before them to multiples of this
GROUP = 64  # activations of a token that are rounded with one scale
TOLERANCE = 0.2  # median distance of a converted model's output vectors from torch's, in lengths of torch's
EXAMPLE = "She waited for an hour at the garage, and then took the bus to her office in the city"


def converted(setting: str, loaded: Any, folder: Path | None) -> Any:
    """A model that reads by OpenVINO from now on; its weights in torch are released.

    Args:
        setting: that names the model: ``"encoder"``, ``"entailment_model"`` or ``"language_model"``.
        loaded: a SentenceTransformer, (classifier, tokenizer) or CausalLanguageModel, on the CPU in float32.
        folder: where the converted model is kept; None: it is converted in each process.

    Raises:
        UnsupportedModelError: the model cannot be converted, or gives other numbers then.
    """
    try:
        if setting == "language_model":
            return ConvertedLanguageModel(loaded, folder)
        if setting == "encoder":
            loaded[0].model = ConvertedEncoder(loaded[0].model, loaded.tokenizer, folder)
        else:
            model, tokenizer = loaded
            setattr(model, model.base_model_prefix, ConvertedEncoder(model.base_model, tokenizer, folder))
        return loaded
    except UnsupportedModelError:
        raise
    except Exception as error:  # models of other architectures fail in many ways
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UnsupportedModelError(f'OpenVINO cannot convert it ({reason}); choose engine="torch"') from error


class _Module(torch.nn.Module):
    """A function of tensors as a module; a model that it calls is a part, as tracing asks for."""

    def __init__(self, function: Callable[..., tuple[Tensor, ...]], model: torch.nn.Module) -> None:
        super().__init__()
        self._function, self.model = function, model

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return self._function(*inputs)


class Graph:
    """A converted model; torch tensors in and out. Not for several threads at once."""

    def __init__(self, model: Any) -> None:
        options = {
            "INFERENCE_PRECISION_HINT": "f32",  # of what is not rounded; else bfloat16 where the CPU has it
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": GROUP,
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
            "NUM_STREAMS": 1,
        }
        self._request = openvino.Core().compile_model(model, "CPU", options).create_infer_request()
        self._outputs, self._process = range(len(model.outputs)), os.getpid()

    @classmethod
    def of(cls, module: _Module, example: Sequence[Tensor], folder: Path | None) -> Graph:
        """The graph of a module, converted once and kept in a folder.

        Raises:
            UnsupportedModelError: the graph's first output is not the module's.
        """
        if folder and folder.exists():
            return cls(openvino.Core().read_model(folder / "graph.xml"))
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tracing: what is a constant of the model is one of the graph
            expected = module(*example)[0]
            model = openvino.convert_model(module, example_input=tuple(example))
        _round_weights(model)
        graph = cls(model)
        distance = (graph(*example)[0] - expected).norm(dim=-1) / expected.norm(dim=-1)
        if not distance.median() <= TOLERANCE:
            raise UnsupportedModelError('in OpenVINO the model gives other numbers; choose engine="torch"')
        try:
            if folder:
                with stored_folder(folder) as beside:
                    openvino.save_model(model, beside / "graph.xml", compress_to_fp16=False)
        except (OSError, RuntimeError) as error:
            warn(f"{folder} cannot be stored ({error}), and the model is converted in each process")
        return graph

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        """The outputs; RuntimeError in a forked process, where OpenVINO would wait for ever."""
        if os.getpid() != self._process:
            raise RuntimeError('OpenVINO does not live on in a forked process; use "spawn", or engine="torch"')
        self._request.infer([tensor.numpy() for tensor in inputs], share_inputs=True)
        return [torch.from_numpy(self._request.get_output_tensor(index).data.copy()) for index in self._outputs]


def _round_weights(model: openvino.Model) -> None:
    """Weights of linear layers to 8 bits, with one scale for each output."""
    from openvino import opset13 as ops

    for operation in model.get_ordered_ops():
        if operation.get_type_name() != "MatMul":
            continue
        constant = operation.input_value(1).get_node()
        if constant.get_type_name() != "Constant" or len(constant.shape) != 2:
            continue
        weights = constant.get_data().astype(np.float32)
        inputs = 1 if operation.get_attributes()["transpose_b"] else 0
        scale = np.abs(weights).max(axis=inputs, keepdims=True) / 127
        scale[scale == 0] = 1.0
        rounded = ops.convert(ops.constant(np.rint(weights / scale).astype(np.int8)), "f32")
        operation.input(1).replace_source_output(ops.multiply(rounded, ops.constant(scale)).output(0))


def _length(tokens: int, most: int, step: int = STEP) -> int:
    """The length to which a text is padded: a multiple of ``step``, or ``most``, if that is enough."""
    return min(max(step, -(-tokens // step) * step), max(most, tokens))


def _places(values: Sequence[T]) -> dict[T, list[int]]:
    """Of each different value where it stands."""
    places: dict[T, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(value, []).append(place)
    return places


class ConvertedEncoder(torch.nn.Module):
    """Stands in the place of a transformer without a head; UnsupportedModelError where padding is on the left."""

    def __init__(self, model: Any, tokenizer: Any, folder: Path | None) -> None:
        super().__init__()
        if tokenizer.padding_side != "right":
            raise UnsupportedModelError('OpenVINO reads texts that are padded on the right; choose engine="torch"')
        self.config, self._most = model.config, position_limit(model) or 2**31
        example = tokenizer([EXAMPLE, EXAMPLE[:30]], padding=True, max_length=STEP, truncation=True)
        self._names = [name for name in tokenizer.model_input_names if name in example]

        def read(*inputs: Tensor) -> tuple[Tensor, ...]:
            outputs = model(**dict(zip(self._names, inputs, strict=True)))
            pooled = getattr(outputs, "pooler_output", None)
            return (outputs.last_hidden_state,) if pooled is None else (outputs.last_hidden_state, pooled)

        self._graph = Graph.of(_Module(read, model), [torch.tensor(example[name]) for name in self._names], folder)
        self._fillers = {"input_ids": tokenizer.pad_token_id or 0}
        # What others ask of the model: its device and type, and where positions begin.
        tables = [module for name, module in model.named_modules() if name.endswith("position_embeddings")]
        self.position_embeddings = tables[0] if tables else None
        self._here = torch.nn.Parameter(torch.empty(0), requires_grad=False)

    def forward(self, input_ids: Tensor, **others: Any) -> BaseModelOutputWithPooling:
        """As a transformer of transformers: token ids, attention mask and the like, (texts, tokens)."""
        inputs = {"input_ids": input_ids, **others}
        width = input_ids.shape[1]
        lengths = [_length(length, self._most) for length in inputs["attention_mask"].sum(1).tolist()]
        outputs: dict[int, tuple[Tensor, ...]] = {}
        for length, texts in _places(lengths).items():
            more = (0, max(0, length - width))
            fed = [pad(inputs[name][texts, :length], more, value=self._fillers.get(name)) for name in self._names]
            hidden, *pooled = self._graph(*fed)
            hidden = pad(hidden[:, :width], (0, 0, 0, max(0, width - length)))
            outputs.update(zip(texts, zip(hidden, *pooled, strict=True), strict=True))
        hidden, *pooled = map(torch.stack, zip(*(outputs[text] for text in range(len(lengths))), strict=True))
        return BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=pooled[0] if pooled else None)


class _States(NewStates):
    """Given keys and values, and those of the tokens that are read."""

    def __init__(self, past: Sequence[Tensor]) -> None:
        super().__init__()
        self._past = past

    def update(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        keys, values = super().update(*args, **kwargs)
        past_keys, past_values = self._past[2 * len(self.states) - 2 : 2 * len(self.states)]
        return torch.cat([past_keys, keys], dim=2), torch.cat([past_values, values], dim=2)


def _attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None = None, **more: Any
) -> tuple[Tensor, None]:
    """Query heads that share a key head stand one behind the other: its keys and values need not be copied."""
    rows, heads, tokens, size = query.shape
    shared = getattr(module, "num_key_value_groups", 1)
    grouped = query.reshape(rows, heads // shared, shared * tokens, size)
    output = scaled_dot_product_attention(grouped, key, value, mask.repeat(1, 1, shared, 1), scale=scaling)
    return output.reshape(rows, heads, tokens, size).transpose(1, 2), None


AttentionInterface.register(GROUPED, _attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)


class ConvertedLanguageModel(CausalLanguageModel):
    """Reads texts, each in a row of its own; it neither plans nor samples."""

    pack_tokens = 0

    def __init__(self, model: CausalLanguageModel, folder: Path | None) -> None:
        vars(self).update(vars(model))
        self.prompts = PromptMemory(PROMPT_BYTES)

        def read(tokens: Tensor, positions: Tensor, mask: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
            places = {"input_ids": tokens, "position_ids": positions, "attention_mask": mask}
            cache = _States(states)
            places |= {self.cache_name: cache}
            hidden = self.model.base_model(**places, use_cache=True).last_hidden_state
            return (hidden, *chain.from_iterable(cache.states))

        def surprisal(hidden: Tensor, targets: Tensor) -> tuple[Tensor]:
            return (CausalLanguageModel._surprisal(self, hidden, targets),)

        tokens = self.tensor(self.codec.encode(EXAMPLE)[:STEP]).expand(2, -1)
        mask = self.mask(pad(torch.ones(2, STEP, STEP, dtype=torch.bool).tril(), (STEP, 0)))
        past = [torch.zeros(2, len(state), STEP, state.shape[2]) for layer in self._states for state in layer]
        example = [tokens, torch.arange(STEP).expand(2, -1), mask, *past]
        hidden = torch.randn(2, self.head.weight.shape[1])
        with self.exclusive(), mars_attention(self.model.config, GROUPED):
            parts = _Module(read, self.model.base_model), _Module(surprisal, self.head)
            self._reading = Graph.of(parts[0], example, folder and Path(f"{folder}-reading"))
            self._surprisals = Graph.of(parts[1], [hidden, tokens[:, 0]], folder and Path(f"{folder}-surprisal"))
        self.model.to("meta")

    def new_cache(self, rows: int, capacity: int) -> KeyValueCache:
        """With room for padding."""
        return super().new_cache(rows, _length(capacity, self.window, SLOTS))

    def _surprisal(self, hidden: Tensor, targets: Tensor) -> Tensor:
        more = -len(targets) % STEP
        [surprise] = self._surprisals(pad(hidden, (0, 0, 0, more)), pad(targets, (0, more)))
        return surprise[: len(targets)]

    def forward(self, tokens: Tensor, positions: Tensor, feed: Feed) -> tuple[Tensor, LayerStates]:
        """As in torch; each row of the feed's cache, which is there, has its own text."""
        assert feed.cache is not None
        texts, places = torch.split(tokens, list(feed.counts)), torch.split(positions, list(feed.counts))
        before = [int(place[0]) for place in places]
        shapes = [
            (_length(count, self.window), _length(past, self.window, SLOTS))
            for count, past in zip(feed.counts, before, strict=True)
        ]
        outputs: dict[int, tuple[Tensor, ...]] = {}
        for (length, slots), rows in _places(shapes).items():
            batch = [
                torch.stack([pad(of[row], (0, length - len(of[row]))) for row in rows]) for of in (texts, places)
            ]
            past = torch.arange(slots) < self.tensor([before[row] for row in rows])[:, None]
            causal = torch.ones(len(rows), length, length, dtype=torch.bool).tril()
            mask = self.mask(torch.cat([past[:, None].expand(-1, length, -1), causal], dim=2))
            chosen = self.tensor(rows) if feed.rows is None else feed.rows[rows]
            cached = [state for layer in range(self.layers) for state in feed.cache.past(layer, slots, chosen)]
            outputs.update(zip(rows, zip(*self._reading(*batch, mask, *cached), strict=True), strict=True))
        in_order = [outputs[row] for row in range(len(texts))]
        hidden = [of_row[0][:count] for of_row, count in zip(in_order, feed.counts, strict=True)]
        states = [
            torch.cat([state[:, :count] for state, count in zip(of_rows, feed.counts, strict=True)], dim=1)
            for of_rows in list(zip(*in_order, strict=True))[1:]
        ]
        return torch.cat(hidden), list(zip(states[::2], states[1::2], strict=True))
