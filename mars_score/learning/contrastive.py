"""Learning from damaged texts alone, and LS_Score, which is learned so: a score without references or ratings.

Wu et al. 2020, https://aclanthology.org/2020.emnlp-main.294
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from mars_score.learning.cross_encoder import CrossEncoder
from mars_score.learning.encoder import EncoderHead, no_training
from mars_score.learning.pairs import Source, drop_words, foreign_text, generator, references_of
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.training import Examples, is_held_out
from mars_score.meta.attacks import reorder
from mars_score.scoring.heads import Example
from mars_score.scoring.result import Term
from mars_score.store.results import digest

ALPHA, BETA, MARGIN = 0.01, 1.0, 1.0  # of the linguistic part, of the semantic part, and of the loss: the paper's
DELETED = 0.3  # share of the words; the paper does not say how many
LINGUISTIC = "linguistic"


def damaged(source: Source, sources: Sequence[Source], seed: int) -> list[str]:
    """The text with words deleted, with another text added, and with half of its words in disorder."""
    drawn = generator("contrast", seed, source)
    foreign = foreign_text(source, sources, drawn)
    found = [
        drop_words(source.text, DELETED, drawn),
        f"{source.text} {foreign}" if foreign else None,
        reorder((source.text, (), ""), drawn),
    ]
    return [text for text in found if text]


class LsNetwork(CrossEncoder):
    """Reads candidate and context one by one: semantic and linguistic part of each candidate's score.

    The output layer over the vocabulary is the encoder's table of word embeddings, which stays as it is; what is
    learned before it is one layer and its activation (GELU).
    """

    def __init__(self, encoder: Any, seed: int = 0) -> None:
        self._seed = seed
        super().__init__(encoder, {LINGUISTIC: encoder[0].auto_model.config.hidden_size})

    def make_layer(self, size: int) -> torch.nn.Linear:
        """A layer on single token vectors, with random weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            return torch.nn.Linear(size, size)

    def parts(self, texts: Sequence[str], contexts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The semantic part of each text (0 without a context) and the linguistic one, (texts,) each."""
        different = list(dict.fromkeys([*texts, *contexts]))
        ids = [self.begin_and_end(one) for one in self.token_ids(different)]
        states = self.read([(one, [0] * len(one)) for one in ids])
        vectors = torch.nn.functional.normalize(torch.stack([one.mean(0) for one in states]), dim=-1)
        places = {text: index for index, text in enumerate(different)}
        rows, of_contexts = [places[text] for text in texts], [places[text] for text in contexts]
        has_context = torch.tensor([bool(text) for text in contexts], device=vectors.device)
        semantic = (vectors[rows] * vectors[of_contexts]).sum(-1) * has_context
        return semantic, torch.stack([self._linguistic(states[row], ids[row]) for row in rows])

    def _linguistic(self, states: Tensor, ids: list[int]) -> Tensor:
        """Mean log probability of a text's own tokens, each read off its own state."""
        own = torch.tensor(ids[1:-1], device=states.device)
        if not len(own):
            return states.sum() * 0.0
        table = self.transformer.get_input_embeddings().weight
        hidden = torch.nn.functional.gelu(self.layers[LINGUISTIC](states[1:-1]))
        return -torch.nn.functional.cross_entropy(hidden @ table.T, own)


def fit_contrast(head: EncoderHead, sources: Sequence[Source]) -> None:
    """Train a head so that it prefers each text to its damaged versions by :data:`MARGIN` (hinge loss).

    A step takes a quarter of the head's batch size, as each text comes with three damaged versions.

    Args:
        head: an :class:`LsHead`, or a cross-encoder, which then reads candidate and context, too.
        sources: texts that people wrote, with their contexts; a tenth of the contexts decides when to stop.
    """
    seed = head.training.seed
    head.training = replace(head.training, batch_size=max(1, head.training.batch_size // 4))
    versions = [[one.text, *damaged(one, sources, seed)] for one in sources]
    contexts = head.nearest([(one.text, one.context) for one in sources])

    def loss(batch: Sequence[int]) -> Tensor:
        texts = [text for i in batch for text in versions[i]]
        scores = head.scores(texts, [contexts[i] for i in batch for _ in versions[i]])
        losses, start = [], 0
        for i in batch:
            of_text = scores[start : start + len(versions[i])]
            losses.append(torch.relu(MARGIN - (of_text[0] - of_text[1:])).sum())
            start += len(versions[i])
        return torch.stack(losses).mean()

    held_out = [is_held_out(one.context or one.text) for one in sources]
    examples = Examples.split([""] * len(sources), [len(one.text) for one in sources], held_out)
    head.run_training(loss, examples, digest("contrast", versions, contexts).hex())


class LsHead(EncoderHead):
    """LS_Score: cosine of candidate and context, and how likely the encoder finds the candidate's words.

    Args: as for :class:`EncoderHead`; ``loss`` has no effect.
    """

    kind: ClassVar[str] = "ls"
    form: ClassVar[dict[str, Any]] = {"variant": "fast"}
    network: LsNetwork

    def make_network(self, encoder: Any) -> CrossEncoder:
        """The network before training."""
        return LsNetwork(encoder, self.training.seed)

    def fit(self, sets: Sequence[TrainingSet], examples: Sequence[Sequence[Example]]) -> Self:
        """Learn from references with their contexts; ratings and candidates are not looked at."""
        fit_contrast(self, references_of(sets))
        return self

    def scores(self, texts: Sequence[str], contexts: Sequence[str]) -> Tensor:
        """LS_Score of each text, (texts,)."""
        semantic, linguistic = self.network.parts(texts, contexts)
        return BETA * semantic + ALPHA * linguistic

    def score(self, examples: Sequence[Example]) -> list[tuple[Term, ...]]:
        """Two terms, "semantic" and "linguistic"; references are not looked at."""
        contexts = self.nearest([(one.candidate, one.context) for one in examples])
        order = sorted(range(len(examples)), key=lambda index: len(examples[index].candidate))
        found: list[tuple[Term, ...]] = [()] * len(examples)
        with no_training(self.network):
            for start in range(0, len(order), self.batch_size):
                part = order[start : start + self.batch_size]
                semantic, linguistic = self.network.parts(
                    [examples[index].candidate for index in part], [contexts[index] for index in part]
                )
                for index, of_meaning, of_words in zip(part, semantic.tolist(), linguistic.tolist(), strict=True):
                    found[index] = (Term("semantic", of_meaning, BETA), Term("linguistic", of_words, ALPHA))
        return found
