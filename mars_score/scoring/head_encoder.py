"""Learned heads that read the texts themselves: ``"encoder"`` and ``"ls"``.

Both start from a copy of the preset's encoder. ``"encoder"`` is the cross-encoder of BLEURT (Sellam et al. 2020,
https://aclanthology.org/2020.acl-main.704); ``"ls"`` is LS_Score (Wu et al. 2020,
https://aclanthology.org/2020.emnlp-main.294), which looks at no reference.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from mars_score.data.overlap import windows
from mars_score.errors import UnsupportedModelError
from mars_score.models.loading import shared_model
from mars_score.models.memory import position_limit
from mars_score.models.torch_modes import exclusive, ordinary_mode
from mars_score.scoring.evidence import EMBED, Reader
from mars_score.scoring.head_folder import HeadFolder
from mars_score.scoring.row import Example, Term
from mars_score.settings import Settings
from mars_score.store.runtime import Runtime

Segments = tuple[str, str, str]  # reference, candidate, parts of the context; each may be blank
TEXT_TOKENS = 96  # read of a reference, and of a candidate
ALL_TOKENS = 256  # of a sequence; the context gets what is left
NEAREST_WINDOWS = 2
# First weights of: the mean of all token vectors; the cosines of reference and candidate, candidate and context.
START = (0.0, 2.0, 1.0)
ALPHA, BETA = 0.01, 1.0  # of LS_Score's linguistic and semantic part: the paper's


class TextEncoder(CrossEncoder):  # type: ignore[misc]
    """A copy of an encoder's transformer in single precision, and a layer on it; its rows are :data:`Segments`.

    Word embeddings are not trained: they are half of a small encoder, and few ratings say little of words.
    """

    @classmethod
    def of(cls, encoder: Any, outputs: int = 1) -> Self:
        """The network before training, on a ``SentenceTransformer``.

        The layer gives ``outputs`` numbers for a row, the first of which is the score.

        Raises:
            UnsupportedModelError: the encoder's tokenizer has no separator.
        """
        transformer = copy.deepcopy(encoder[0])
        tokenizer = getattr(encoder, "tokenizer", None)
        if None in (getattr(tokenizer, "cls_token_id", None), getattr(tokenizer, "sep_token_id", None)):
            raise UnsupportedModelError(
                f"the tokenizer of {type(encoder[0]).__name__} has no separator between texts, which a trained "
                "encoder needs; choose another encoder"
            )
        with ordinary_mode(grad=True):
            transformer.float().requires_grad_(True)
            transformer.auto_model.get_input_embeddings().requires_grad_(False)
            layer = cls.layer(transformer.auto_model.config.hidden_size, outputs)
            return cls(modules=[transformer, layer], device=str(encoder.device), activation_fn=torch.nn.Identity())

    @staticmethod
    def layer(size: int, outputs: int) -> Dense:
        """The layer before training; ``size`` is the dimension of a token vector."""
        raise NotImplementedError

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text; what spells a special token is text."""
        ways = {"add_special_tokens": False, "split_special_tokens": True, "truncation": False, "verbose": False}
        return list(self.tokenizer(list(texts), **ways)["input_ids"])

    def padded(self, sequences: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """The transformer's input; each sequence becomes begin, its tokens, separator."""
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        ids = [torch.tensor([begin, *sequence, end]) for sequence in sequences]
        padding = self.tokenizer.pad_token_id or 0
        mask = [torch.ones_like(sequence) for sequence in ids]
        return {
            "input_ids": torch.nn.utils.rnn.pad_sequence(ids, True, padding),
            "attention_mask": torch.nn.utils.rnn.pad_sequence(mask, True, 0),
        }

    @property
    def window(self) -> int:
        """Tokens of a sequence, special ones included."""
        return min(ALL_TOKENS, position_limit(self[0].auto_model) or ALL_TOKENS)

    def save_pretrained(self, path: str, *arguments: Any, **more: Any) -> None:
        """Save a checkpoint, without the card that describes a model to people."""
        super().save_pretrained(path, *arguments, **{**more, "create_model_card": False})

    def trained(self) -> dict[str, NDArray[Any]]:
        """The weights that may differ from the encoder's own, by name."""
        weights = {name: weight for name, weight in self.named_parameters() if weight.requires_grad}
        return {name: weight.detach().cpu().numpy() for name, weight in weights.items()}

    def take(self, arrays: Mapping[str, NDArray[Any]], where: object) -> None:
        """Take over weights that :meth:`trained` gave; the layer may have fewer outputs than here.

        Raises:
            ValueError: weights of another network, with ``where`` they are from.
        """
        for name, parameter in self.named_parameters():
            if not parameter.requires_grad:
                continue
            array = arrays.get(name, np.empty(0))
            rows = len(array) if name.startswith("1.") else len(parameter)
            if array.shape != tuple(parameter[:rows].shape) or not rows:
                raise ValueError(
                    f"{where}: the weights of {name} are missing or of another size; train it with this encoder"
                )
            parameter.data[:rows].copy_(torch.from_numpy(np.array(array)))


class SegmentEncoder(TextEncoder):
    """Reads reference, candidate and context as one sequence.

    The layer sees the mean of all token vectors, and two products of segments' mean vectors (of length 1): of
    reference and candidate, and of candidate and context, 0 where one of them is blank. The sum of a product is a
    cosine, which sentence encoders were trained for, and with which the score begins.
    """

    @staticmethod
    def layer(size: int, outputs: int) -> Dense:
        """A weighted sum of the two cosines."""
        weights = torch.tensor(START).repeat_interleave(size).repeat(outputs, 1) / size
        names = {"module_input_name": "pooled", "module_output_name": "scores"}
        linear = torch.nn.Identity()
        return Dense(len(START) * size, outputs, True, linear, weights, torch.zeros(outputs), **names)

    def preprocess(self, inputs: Sequence[Segments], prompt: str | None = None, **more: Any) -> dict[str, Tensor]:
        """Begin, reference, separator, candidate, separator, context, separator."""
        ids, end = self.token_ids([text for row in inputs for text in row]), self.tokenizer.sep_token_id
        most = min(TEXT_TOKENS, (self.window - 4) // 2)
        sequences = []
        for start in range(0, len(ids), 3):
            reference, candidate, context = ids[start][:most], ids[start + 1][:most], ids[start + 2]
            rest = self.window - 4 - len(reference) - len(candidate)
            sequences.append([*reference, end, *candidate, end, *context[:rest]])
        return self.padded(sequences)

    def forward(self, input: dict[str, Tensor], **more: Any) -> dict[str, Tensor]:  # noqa: A002
        """Adds ``scores``, (rows, outputs)."""
        features = self[0](input)
        states, known = features["token_embeddings"], features["attention_mask"].bool()
        ends = features["input_ids"] == self.tokenizer.sep_token_id
        segment, own = ends.cumsum(1), known & ~ends
        own[:, 0] = False
        reference, candidate, context = (
            normalize((states * (own & (segment == number))[..., None]).sum(1), dim=-1) for number in range(3)
        )
        size = states.shape[-1]
        mean = (states * known[..., None]).sum(1) / known.sum(1, keepdim=True)
        features["pooled"] = torch.cat([mean, reference * candidate * size, candidate * context * size], dim=-1)
        scored: dict[str, Tensor] = self[1](features)
        return scored


class LsEncoder(TextEncoder):
    """Reads candidate and context one by one; the output is the semantic and the linguistic part of LS_Score.

    The semantic part is their cosine, the linguistic one the mean log probability of the candidate's tokens, each
    read off its own state by a layer with GELU and the table of word embeddings.
    """

    @staticmethod
    def layer(size: int, outputs: int) -> Dense:
        """A layer on single token vectors, with random weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            names = {"module_input_name": "token_embeddings", "module_output_name": "hidden"}
            return Dense(size, size, True, torch.nn.GELU(), **names)

    def quality(self, scores: Tensor) -> Tensor:
        """LS_Score of each row of the output, (rows,)."""
        return BETA * scores[:, 0] + ALPHA * scores[:, 1]

    def preprocess(self, inputs: Sequence[Segments], prompt: str | None = None, **more: Any) -> dict[str, Tensor]:
        """All candidates, then all contexts; references are not read."""
        texts = [candidate for _, candidate, _ in inputs] + [context for _, _, context in inputs]
        return self.padded([ids[: self.window - 2] for ids in self.token_ids(texts)])

    def forward(self, input: dict[str, Tensor], **more: Any) -> dict[str, Tensor]:  # noqa: A002
        """Adds ``scores``, (rows, 2)."""
        features = self[1](self[0](input))
        ids, states, known = (features[name] for name in ("input_ids", "token_embeddings", "attention_mask"))
        vectors = normalize((states * known[..., None]).sum(1), dim=-1)
        candidates, contexts = vectors.chunk(2)
        lengths = known.sum(1) - 2
        semantic = (candidates * contexts).sum(-1) * (lengths.chunk(2)[1] > 0)
        table = self[0].auto_model.get_input_embeddings().weight
        linguistic = [
            -cross_entropy(features["hidden"][row, 1 : 1 + length] @ table.T, ids[row, 1 : 1 + length])
            if length > 0
            else states.sum() * 0.0
            for row, length in enumerate(lengths.chunk(2)[0].tolist())
        ]
        scores = torch.stack([semantic, torch.stack(linguistic)], dim=-1)
        return {**features, "scores": scores}


class EncoderHead:
    """A :class:`SegmentEncoder`; of several references the best counts, as in BLEURT.

    Raises:
        ModelUnavailableError, UnsupportedModelError: the encoder cannot be loaded or used.
    """

    kind: ClassVar[str] = "encoder"
    network_class: ClassVar[type[TextEncoder]] = SegmentEncoder

    def __init__(self, settings: Settings, runtime: Runtime, outputs: int = 1) -> None:
        models = settings.models
        encoder = shared_model("encoder", models.encoder, models, runtime, in_torch=True)
        self.network = self.network_class.of(encoder, outputs)
        self._reader, self._batch_size = Reader(settings, runtime), runtime.encoder_batch_size or 32

    @classmethod
    def load(cls, saved: HeadFolder, settings: Settings, runtime: Runtime) -> Self:
        """The head of a folder, whose models have been compared with the settings'."""
        head = cls(settings, runtime)
        head.network.take(saved.arrays, saved.path)
        return head

    def nearest(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Of each candidate's context the windows that are nearest to the candidate, nearest first, as one text.

        The cosine by the encoder as it was before training decides.
        """
        parts = {context: windows(context) for _, context in pairs}
        long = [pair for pair in pairs if len(parts[pair[1]]) > NEAREST_WINDOWS]
        vectors = self._reader.read(EMBED, [text for pair in long for text in (pair[0], *parts[pair[1]])])
        texts = []
        for candidate, context in pairs:
            order = parts[context]
            if len(order) > NEAREST_WINDOWS:
                own = vectors[candidate].vector
                order = sorted(order, key=lambda part: -float(vectors[part].vector @ own))[:NEAREST_WINDOWS]
            texts.append(" ".join(order))
        return texts

    def outputs(self, rows: Sequence[Segments]) -> NDArray[np.float32]:
        """What the network gives for each row, (rows, outputs)."""
        with exclusive(self.network), ordinary_mode():
            scores = self.network.predict(list(rows), batch_size=self._batch_size, show_progress_bar=False)
        return np.reshape(scores, (len(rows), -1))

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """One term, "encoder": 0.5 for a candidate of average quality, 0.25 more per standard deviation."""
        contexts = self.nearest([(example.candidate, example.context) for example in examples])
        counts = [len(example.references) or 1 for example in examples]
        rows = [
            (reference, example.candidate, context)
            for example, context in zip(examples, contexts, strict=True)
            for reference in example.references or ("",)
        ]
        outputs = np.split(self.outputs(rows)[:, 0], np.cumsum(counts)[:-1])
        return [(Term("encoder", 0.5 + float(values.max()) / 4, 1.0),) for values in outputs]


class LsHead(EncoderHead):
    """LS_Score: cosine of candidate and context, and how likely the encoder finds the candidate's words."""

    kind: ClassVar[str] = "ls"
    network_class: ClassVar[type[TextEncoder]] = LsEncoder

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """Two terms, "semantic" and "linguistic"; references are not looked at."""
        contexts = self.nearest([(example.candidate, example.context) for example in examples])
        outputs = self.outputs(
            [("", example.candidate, context) for example, context in zip(examples, contexts, strict=True)]
        )
        return [
            (Term("semantic", semantic, BETA), Term("linguistic", linguistic, ALPHA))
            for semantic, linguistic in outputs.tolist()
        ]
