"""Learned heads that read the texts themselves: ``"encoder"`` and ``"ls"``.

Both start from a copy of the preset's encoder. ``"encoder"`` is the cross-encoder of BLEURT (Sellam et al. 2020,
https://aclanthology.org/2020.acl-main.704); ``"ls"`` is LS_Score (Wu et al. 2020,
https://aclanthology.org/2020.emnlp-main.294), which looks at no reference.
"""

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize
from torch.nn.utils.rnn import pad_sequence

from mars_score.data.overlap import windows
from mars_score.data.validation import Row
from mars_score.errors import UnsupportedModelError
from mars_score.models.loading import shared_model
from mars_score.models.running import exclusive, ordinary_mode, position_limit
from mars_score.progress import Runtime
from mars_score.scoring.evidence import EMBED, Reader
from mars_score.scoring.row import Example, Term
from mars_score.settings import Settings

Segments = tuple[str, str, str]  # reference, candidate, parts of the context; each may be blank
TEXT_TOKENS = 96  # read of a reference, and of a candidate
ALL_TOKENS = 256  # of a sequence; the context gets what is left
NEAREST_WINDOWS = 2
# First weights of: the mean of all token vectors; the cosines of reference and candidate, candidate and context.
START = (0.0, 2.0, 1.0)
ALPHA, BETA = 0.01, 1.0  # of LS_Score's linguistic and semantic part: the paper's


class TextHead(CrossEncoder):  # type: ignore[misc]
    """A copy of an encoder's transformer in single precision, and a layer on it; its rows are :data:`Segments`.

    Word embeddings are not trained: they are half of a small encoder, and few ratings say little of words. A
    subclass says which ``layer(size, outputs)`` there is before training, on token vectors of dimension ``size``.
    """

    reader: Reader
    batch_size: int
    window: int  # tokens of a sequence, special ones included

    @classmethod
    def of(cls, settings: Settings, runtime: Runtime, outputs: int = 1) -> Self:
        """The head before training; the layer gives ``outputs`` numbers for a row, the first is the score.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded.
            UnsupportedModelError: its tokenizer has no separator.
        """
        models = settings.models
        encoder = shared_model("encoder", models, runtime, in_torch=True)
        tokenizer = getattr(encoder, "tokenizer", None)
        if None in (getattr(tokenizer, "cls_token_id", None), getattr(tokenizer, "sep_token_id", None)):
            raise UnsupportedModelError(
                f"the tokenizer of {type(encoder[0]).__name__} has no separator between texts, which a trained "
                "encoder needs; choose another encoder"
            )
        transformer = copy.deepcopy(encoder[0])
        with ordinary_mode(grad=True):
            transformer.float().requires_grad_(True)
            transformer.auto_model.get_input_embeddings().requires_grad_(False)
            modules = [transformer, cls.layer(transformer.auto_model.config.hidden_size, outputs)]
            head = cls(modules=modules, device=str(encoder.device), activation_fn=torch.nn.Identity())
        head.reader, head.batch_size = Reader(settings, runtime), runtime.encoder_batch_size or 32
        head.window = min(ALL_TOKENS, position_limit(transformer.auto_model) or ALL_TOKENS)
        return head

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text; what spells a special token is text."""
        ways = {"add_special_tokens": False, "split_special_tokens": True, "truncation": False, "verbose": False}
        return list(self.tokenizer(list(texts), **ways)["input_ids"])

    def padded(self, sequences: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """The transformer's input; each sequence becomes begin, its tokens, separator."""
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        ids = [torch.tensor([begin, *sequence, end]) for sequence in sequences]
        pad = partial(pad_sequence, batch_first=True)
        return {
            "input_ids": pad(ids, padding_value=self.tokenizer.pad_token_id or 0),
            "attention_mask": pad([torch.ones_like(sequence) for sequence in ids]),
        }

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
        if arrays.keys() != self.trained().keys():
            raise ValueError(f"{where}: the weights are those of another network; train the head again")
        for name, array in arrays.items():
            self.get_parameter(name).data[: len(array)].copy_(torch.from_numpy(np.array(array)))

    def nearest(self, rows: Sequence[Example | Row]) -> list[str]:
        """Of each row's context the windows that are nearest to the candidate, nearest first, as one text.

        The cosine by the encoder as it was before training decides.
        """
        texts = [(row.candidate, windows(row.context)) for row in rows]
        long = [(candidate, *parts) for candidate, parts in texts if len(parts) > NEAREST_WINDOWS]
        vectors = self.reader.read(EMBED, list(chain.from_iterable(long)))
        nearest = []
        for candidate, parts in texts:
            if len(parts) > NEAREST_WINDOWS:
                own = vectors[candidate].vector
                parts = sorted(parts, key=lambda part: -float(vectors[part].vector @ own))[:NEAREST_WINDOWS]
            nearest.append(" ".join(parts))
        return nearest

    def outputs(self, rows: Sequence[Segments]) -> NDArray[np.float32]:
        """What the network gives for each row, (rows, outputs)."""
        with exclusive(self), ordinary_mode():
            scores = self.predict(list(rows), batch_size=self.batch_size, show_progress_bar=False)
        return np.reshape(scores, (len(rows), -1))


class EncoderHead(TextHead):
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
        limit = min(TEXT_TOKENS, (self.window - 4) // 2)
        sequences = []
        for reference, candidate, context in zip(ids[::3], ids[1::3], ids[2::3], strict=True):
            texts = [*reference[:limit], end, *candidate[:limit], end, *context]
            sequences.append(texts[: self.window - 2])
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

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """One term, "encoder": 0.5 for a candidate of average quality, 0.25 more per standard deviation.

        Of several references the best counts, as in BLEURT.
        """
        counts = [len(example.references) or 1 for example in examples]
        rows = [
            (reference, example.candidate, context)
            for example, context in zip(examples, self.nearest(examples), strict=True)
            for reference in example.references or ("",)
        ]
        outputs = np.split(self.outputs(rows)[:, 0], np.cumsum(counts)[:-1])
        return [(Term("encoder", 0.5 + float(values.max()) / 4, 1.0),) for values in outputs]


class LsHead(TextHead):
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

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """Two terms, "semantic" and "linguistic"; references are not looked at."""
        contexts = self.nearest(examples)
        rows = [("", example.candidate, context) for example, context in zip(examples, contexts, strict=True)]
        return [
            (Term("semantic", semantic, BETA), Term("linguistic", linguistic, ALPHA))
            for semantic, linguistic in self.outputs(rows).tolist()
        ]


TEXT_HEADS: Mapping[str, type[TextHead]] = {"encoder": EncoderHead, "ls": LsHead}  # by kind
