"""Learned heads that are networks over the texts: ``"encoder"`` and ``"ls"``, whose scores replace MARS's own.

Both start from a copy of the preset's encoder. ``"encoder"`` is the cross-encoder of BLEURT (Sellam et al. 2020,
https://aclanthology.org/2020.acl-main.704); ``"ls"`` is LS_Score (Wu et al. 2020,
https://aclanthology.org/2020.emnlp-main.294), which does not use references.

What is not BLEURT's: pre-training has MARS's score, log probability and PMI as signals, and no back-translation,
on 1,500 pairs of the user's texts and damaged copies, not 6.5 million of Wikipedia. The input also has the two
windows of the context nearest to the candidate. The output is a layer on the mean of all token vectors and two
products, which begin as cosines, not on ``[CLS]``. It has 22M parameters (preset "mini"), not 110M or 340M.

What is not LS_Score's: mean vectors, not ``[CLS]``; the two windows of 100 words nearest to the candidate, not the
document; added sentences are a text of another context; one matrix and the encoder's table of words, not two
matrices; .3 of the words are deleted (theirs is not given).
"""

import copy
import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize
from torch.nn.utils.rnn import pad_sequence

from mars_score.errors import UnsupportedModelError
from mars_score.heads import HeadFolder, check_models, read_head
from mars_score.models.calls import ModelCalls
from mars_score.models.running import exclusive, ordinary_mode, position_limit
from mars_score.rows import Row, Term
from mars_score.settings import Settings
from mars_score.text import windows

Segments = tuple[str, str, str]  # reference, candidate, windows of the context; each may be blank
TEXT_TOKENS = 96  # of a reference, and of a candidate
ALL_TOKENS = 256  # of a sequence; the context gets what is left
WINDOW_WORDS, NEAREST_WINDOWS = 100, 2  # of the context: size, and how many are used
# First weights of: the mean of all token vectors; the cosines of reference and candidate, candidate and context.
START = (0.0, 2.0, 1.0)
ALPHA, BETA = 0.01, 1.0  # of LS_Score's linguistic and semantic part: the paper's
_LAYER = "1."  # begins the names of the weights of the layer on the transformer


class TextFeatures(NamedTuple):
    """A row as a network sees it.

    Attributes:
        references: () where there are none.
        candidate: not blank.
        context: the windows of the context that are nearest to the candidate, nearest first, as one text.
    """

    references: tuple[str, ...]
    candidate: str
    context: str


class TextHead(CrossEncoder):  # type: ignore[misc]
    """A copy of an encoder's transformer in single precision, and a layer on it; its inputs are :data:`Segments`.

    Word embeddings are not trained: they are half of a small encoder, and few ratings say little of words. A
    subclass says which ``layer(size, outputs)`` there is before training, on token vectors of dimension ``size``.
    """

    calls: ModelCalls
    batch_size: int
    window: int  # tokens of a sequence, special ones included
    extra_outputs: int  # outputs that are used in training only
    saved: HeadFolder | None = None  # where the weights were loaded from

    @classmethod
    def from_encoder(cls, calls: ModelCalls, outputs: int = 1) -> Self:
        """Make the head before training; the layer has ``outputs`` outputs for a row, the first is the score.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded.
            UnsupportedModelError: its tokenizer has no separator.
        """
        encoder = calls.encoder()
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
        head.calls, head.batch_size = calls, calls.runtime.encoder_batch_size or 32
        head.window = min(ALL_TOKENS, position_limit(transformer.auto_model) or ALL_TOKENS)
        head.extra_outputs = outputs - 1
        return head

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text; what spells a special token is text."""
        options = {
            "add_special_tokens": False,
            "split_special_tokens": True,
            "truncation": False,
            "verbose": False,
        }
        return list(self.tokenizer(list(texts), **options)["input_ids"])

    def padded(self, sequences: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """Return the transformer's input; each sequence becomes begin, its tokens, separator."""
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

    def trained_weights(self) -> dict[str, NDArray[Any]]:
        """Return the weights that may differ from the encoder's own, by name, without the extra outputs."""
        parameters = {name: weight for name, weight in self.named_parameters() if weight.requires_grad}
        weights = {name: weight.detach().cpu().numpy() for name, weight in parameters.items()}
        return {name: weight[: self._rows(name, weight)] for name, weight in weights.items()}

    def load_weights(self, saved: HeadFolder) -> None:
        """Load the weights of a saved head; HeadError where they are those of another network."""
        saved.check_shapes({name: weight.shape for name, weight in self.trained_weights().items()})
        for name, array in saved.weights.items():
            self.get_parameter(name).data[: len(array)].copy_(torch.from_numpy(np.array(array)))
        self.saved = saved

    def features(self, rows: Sequence[Row]) -> list[TextFeatures]:
        """Return the texts of rows; of a long context the windows nearest to the candidate.

        The cosine by the encoder as it was before training decides which.
        """
        contexts = [windows(row.context, WINDOW_WORDS) for row in rows]
        long = [(row, parts) for row, parts in zip(rows, contexts, strict=True) if len(parts) > NEAREST_WINDOWS]
        encodings = self.calls.encode(chain.from_iterable((row.candidate, *parts) for row, parts in long))
        features = []
        for row, parts in zip(rows, contexts, strict=True):
            if len(parts) > NEAREST_WINDOWS:
                vector = encodings[row.candidate].vector
                parts = sorted(parts, key=lambda part: -float(encodings[part].vector @ vector))[:NEAREST_WINDOWS]
            features.append(TextFeatures(row.references, row.candidate, " ".join(parts)))
        return features

    def outputs(self, inputs: Sequence[Segments]) -> NDArray[np.float32]:
        """Run the network, (inputs, outputs); HeadError where weights that were loaded give no finite outputs."""
        if not inputs:
            return np.zeros((0, 1), np.float32)
        with exclusive(self), ordinary_mode():
            outputs = self.predict(list(inputs), batch_size=self.batch_size, show_progress_bar=False)
        if self.saved and not np.isfinite(outputs).all():
            raise self.saved.error("has weights that give no finite scores")
        return np.reshape(outputs, (len(inputs), -1))

    def _rows(self, name: str, weight: NDArray[Any]) -> int:
        """Return how many rows of a weight are saved: those of the extra outputs are not."""
        return len(weight) - self.extra_outputs * name.startswith(_LAYER)


class EncoderHead(TextHead):
    """Encodes reference, candidate and context as one sequence.

    The layer sees the mean of all token vectors, and two products of segments' mean vectors (of length 1): of
    reference and candidate, and of candidate and context, 0 where one of them is blank. The sum of a product is a
    cosine, which sentence encoders were trained for, and with which the score begins. BLEURT has no context, and a
    layer on the vector of ``[CLS]`` alone.
    """

    @staticmethod
    def layer(size: int, outputs: int) -> Dense:
        """Make a weighted sum of the two cosines."""
        weights = torch.tensor(START).repeat_interleave(size).repeat(outputs, 1) / size
        names = {"module_input_name": "pooled", "module_output_name": "scores"}
        linear = torch.nn.Identity()
        return Dense(len(START) * size, outputs, True, linear, weights, torch.zeros(outputs), **names)

    def preprocess(self, inputs: Sequence[Segments], prompt: str | None = None, **more: Any) -> dict[str, Tensor]:
        """Join begin, reference, separator, candidate, separator, context, separator."""
        ids, end = self.token_ids([text for row in inputs for text in row]), self.tokenizer.sep_token_id
        limit = min(TEXT_TOKENS, (self.window - 4) // 2)
        sequences = []
        for reference, candidate, context in zip(ids[::3], ids[1::3], ids[2::3], strict=True):
            texts = [*reference[:limit], end, *candidate[:limit], end, *context]
            sequences.append(texts[: self.window - 2])
        return self.padded(sequences)

    def forward(self, input: dict[str, Tensor], **more: Any) -> dict[str, Tensor]:  # noqa: A002
        """Add ``scores``, (inputs, outputs)."""
        features = self[0](input)
        states, known = features["token_embeddings"], features["attention_mask"].bool()
        ends = features["input_ids"] == self.tokenizer.sep_token_id
        segment, is_text = ends.cumsum(1), known & ~ends
        is_text[:, 0] = False
        reference, candidate, context = (
            normalize((states * (is_text & (segment == number))[..., None]).sum(1), dim=-1) for number in range(3)
        )
        size = states.shape[-1]
        mean = (states * known[..., None]).sum(1) / known.sum(1, keepdim=True)
        features["pooled"] = torch.cat([mean, reference * candidate * size, candidate * context * size], dim=-1)
        scored: dict[str, Tensor] = self[1](features)
        return scored

    def score(self, features: Sequence[TextFeatures]) -> list[tuple[Term, ...]]:
        """Return one term, "encoder": 0.5 for a candidate of average quality, 0.25 more per standard deviation.

        Of several references the best counts, as in BLEURT.
        """
        references = [row.references or ("",) for row in features]
        inputs = [
            (reference, row.candidate, row.context)
            for row, texts in zip(features, references, strict=True)
            for reference in texts
        ]
        outputs = iter(self.outputs(inputs)[:, 0].tolist())
        best = [max(islice(outputs, len(texts))) for texts in references]
        return [(Term("encoder", 0.5 + output / 4, 1.0),) for output in best]


class LsHead(TextHead):
    """Encodes candidate and context one by one; the outputs are the semantic and the linguistic part of LS_Score.

    The semantic part is their cosine, the linguistic one the mean log probability of the candidate's tokens, each
    predicted from its own state by a layer with GELU and the table of word embeddings. Wu et al. have vectors of
    ``[CLS]`` in place of means of token vectors, the document in place of two windows, and a matrix of its own in
    place of the table.
    """

    @staticmethod
    def layer(size: int, outputs: int) -> Dense:
        """Make a layer on single token vectors, with random weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            names = {"module_input_name": "token_embeddings", "module_output_name": "hidden"}
            return Dense(size, size, True, torch.nn.GELU(), **names)

    def preprocess(self, inputs: Sequence[Segments], prompt: str | None = None, **more: Any) -> dict[str, Tensor]:
        """Tokenize all candidates, then all contexts; references are not used."""
        texts = [candidate for _, candidate, _ in inputs] + [context for _, _, context in inputs]
        return self.padded([ids[: self.window - 2] for ids in self.token_ids(texts)])

    def forward(self, input: dict[str, Tensor], **more: Any) -> dict[str, Tensor]:  # noqa: A002
        """Add ``scores``, (inputs, 2)."""
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

    def score(self, features: Sequence[TextFeatures]) -> list[tuple[Term, ...]]:
        """Return two terms, "semantic" and "linguistic"."""
        outputs = self.outputs([("", row.candidate, row.context) for row in features])
        return [
            (Term("semantic", semantic, BETA), Term("linguistic", linguistic, ALPHA))
            for semantic, linguistic in outputs.tolist()
        ]


TEXT_HEADS: Mapping[str, type[TextHead]] = {"encoder": EncoderHead, "ls": LsHead}  # by kind


def load_text_head(folder: str | os.PathLike[str], settings: Settings, calls: ModelCalls) -> TextHead:
    """Load a saved head with its weights; errors as for :func:`read_text_head`, and HeadError for the weights."""
    saved = read_text_head(folder, settings)
    head = TEXT_HEADS[saved.kind].from_encoder(calls)
    head.load_weights(saved)
    return head


def read_text_head(
    folder: str | os.PathLike[str], settings: Settings, kinds: Sequence[str] = tuple(TEXT_HEADS)
) -> HeadFolder:
    """Read the description of a saved head, for a scorer of these settings.

    Raises:
        FileNotFoundError: there is no such head.
        ValueError: it is of another kind, or it is damaged or was trained with other models.
    """
    saved = read_head(folder)
    if saved.kind not in kinds:
        raise ValueError(f"{saved.path} is a head of kind {saved.kind!r}; give one of kind {' or '.join(kinds)}")
    check_models(saved, settings)
    return saved
