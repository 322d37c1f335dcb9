"""How much pooling matters in a learned metric after BLEURT, the head "encoder" of ``learned_encoders``.

    python -m research.pooling DATA/*.jsonl --rows 300

Heads are trained on half of a set's groups and tested by Pearson's r on the other half. "segments" is the head of
``learned_encoders``: a layer on the mean of all token vectors and on products of segment means. It starts as
cosines, so it is a score before training, too ("untrained"). The layers of the other heads start at zero: "from
zero" has the same inputs, "mean" the mean of all token vectors, and "[CLS]" the vector of that token, as BLEURT.
The values of each draw go to stderr.
"""

import sys
from collections.abc import Iterable, Mapping
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import torch
from sentence_transformers.base.modules import Dense
from torch import Tensor

from mars_score import MarsScorer
from mars_score.rows import weighted_sum
from mars_score.stats.resampling import Floats
from mars_score.training import TrainingSet, term_features, training_set
from research.agreement import drawn, pearson
from research.heads import Rated
from research.learned_encoders.text_heads import START, TEXT_HEADS, EncoderHead
from research.learned_encoders.train_encoders import TrainingOptions, train_on_ratings
from research.sets import read_sets, set_options


class FromZero(EncoderHead):
    """The head with zero weights before training."""

    vectors = len(START)  # inputs of the layer

    @classmethod
    def layer(cls, size: int, outputs: int) -> Dense:
        """Make a layer that outputs 0."""
        names = {"module_input_name": "pooled", "module_output_name": "scores"}
        weights = torch.zeros(outputs, cls.vectors * size)
        return Dense(weights.shape[1], outputs, True, torch.nn.Identity(), weights, torch.zeros(outputs), **names)


class Mean(FromZero):
    """A layer on the mean of all token vectors."""

    vectors = 1
    first_alone = False

    def forward(self, input: dict[str, Tensor], **more: object) -> dict[str, Tensor]:  # noqa: A002
        """Add ``scores``, (inputs, outputs)."""
        features = self[0](input)
        states, known = features["token_embeddings"], features["attention_mask"][..., None]
        features["pooled"] = states[:, 0] if self.first_alone else (states * known).sum(1) / known.sum(1)
        scored: dict[str, Tensor] = self[1](features)
        return scored


class Cls(Mean):
    """A layer on the vector of ``[CLS]``."""

    first_alone = True


HEADS: Mapping[str, type[EncoderHead]]
HEADS = {"segments": EncoderHead, "from zero": FromZero, "mean": Mean, "[CLS]": Cls}


def main() -> None:
    """Train, measure and print."""
    options = set_options(__doc__)
    options.add_argument("--draws", type=int, default=3, help="random halves, each with its seed (default: 3)")
    options.add_argument("--epochs", type=int, default=3, help="at most (default: 3)")
    options.add_argument("--batch", type=int, default=32, help="examples of a step (default: 32, as of that head)")
    options.add_argument("--rate", type=float, default=3e-5, help="learning rate (default: 3e-5, as of that head)")
    args = options.parse_args()
    scorer = MarsScorer("mini", variant="fast")
    arguments = {"per_device_train_batch_size": args.batch, "learning_rate": args.rate}
    print(f"| set | candidates | `fast` | untrained | {' | '.join(HEADS)} |\n|---|{'---:|' * (len(HEADS) + 3)}")
    means = []
    for whole in read_sets(args.files):
        sample = drawn(whole, args.rows)
        data = training_set(sample.name, sample.rows, sample.ratings, sample.groups)
        rated = Rated(data, term_features(scorer, data))
        draws = []
        for seed in range(args.draws):
            draws.append(compare(scorer, rated, TrainingOptions(None, args.epochs, seed, arguments)))
            print(data.name, seed, *(f"{r:.3f}" for r in draws[-1]), file=sys.stderr, flush=True)
        means.append(np.mean(draws, axis=0))
        print(line(data.name, str(len(data.rows)), means[-1]), flush=True)
    print(line("mean", "", np.mean(means, axis=0)))


def compare(scorer: MarsScorer, rated: Rated, options: TrainingOptions) -> list[float]:
    """Return r on half of the groups: of ``fast``, of the head before training, and of each trained head."""
    order = np.random.default_rng(options.seed).permutation(sorted(set(rated.data.groups))).tolist()
    learned, tested = rated.split(set(order[: len(order) // 2]))
    fast = np.array([weighted_sum(terms) for terms, _ in tested.features])
    scores = [fast, scored(EncoderHead.from_encoder(scorer.calls), scorer, tested.data)]
    for kind in HEADS.values():
        with TemporaryDirectory() as folder, patch.dict(TEXT_HEADS, encoder=kind):
            saved = train_on_ratings(scorer, folder, [learned.data], options)
            head = kind.from_encoder(scorer.calls)
            head.load_weights(saved)
        scores.append(scored(head, scorer, tested.data))
    return [pearson(values, tested.data.ratings) for values in scores]


def scored(head: EncoderHead, scorer: MarsScorer, data: TrainingSet) -> Floats:
    """Return the score of each row."""
    features = head.features(data.prepared_rows(scorer))
    return np.array([weighted_sum(terms) for terms in head.score(features)])


def line(name: str, count: str, values: Iterable[float]) -> str:
    """Write a row of the table."""
    return f"| {name} | {count} | {' | '.join(f'{value:.3f}' for value in values)} |"


if __name__ == "__main__":
    main()
