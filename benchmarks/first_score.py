"""Compare a first score with BERTScore, and with bare transformers on the same texts.

Models are loaded before. Texts are invented (see texts.py), new in each run, and not stored. BERTScore (no IDF,
same encoder weights) encodes candidates and references in float32. The bare models do the necessary forward passes
once, in the dtype of MARS: the encoder on each text, the NLI model (of the encoder's size) on each candidate with
its reference, the language model on each candidate after its context and alone.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Any

import torch
from torch.nn.functional import log_softmax

from benchmarks.common import Ratio, parse, progress, report_ratios, seconds_of, speed_parser
from benchmarks.scoring import bert_scorer
from benchmarks.texts import Text, columns, invented
from mars_score import MarsScorer
from mars_score.models.loading import load_model

LONG = 9  # sentences of a context, about 100 words
WORDS = 350  # at most in a batch of the bare models, about as many as in a forward pass of MARS


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=3)
    options.add_argument("--preset", default="mini")
    options.add_argument("--dtype", default="auto", help="of MARS and of the bare models; default: auto")
    options.add_argument("--rows", type=int, default=32)
    args = parse(options, rows=256, repeats=9)
    numbers = count(1)

    def texts(sentences: int) -> list[Text]:
        return invented(args.rows, sentences, seed=next(numbers))

    def mars(scorer: MarsScorer, sentences: int) -> float:
        new = columns(texts(sentences))
        return seconds_of(lambda: scorer.score(*new))

    def bertscore(score: Callable[..., object]) -> float:
        candidates, references, _ = columns(texts(1))
        return seconds_of(lambda: score(candidates, references))

    def bare(models: "BareModels", sentences: int, with_language_model: bool) -> float:
        new = texts(sentences)
        return seconds_of(lambda: models.read(new, with_language_model))

    settings: dict[str, Any] = {"preset": args.preset, "dtype": args.dtype, "store": False}
    scorers = {name: MarsScorer(variant=name, **settings) for name in ("fast", "plus")}
    progress("loading the models")
    models = BareModels(scorers["plus"])
    runs = {"bertscore": partial(bertscore, bert_scorer(args.preset).score)}
    for name, scorer in scorers.items():
        runs[name] = partial(mars, scorer, 1)
        runs[f"{name} long"] = partial(mars, scorer, LONG)
        runs[f"{name} bare"] = partial(bare, models, LONG, name == "plus")
    ratios = []
    for name in scorers:
        ratios += [
            Ratio(f"first score, {name} / BERTScore", name, "bertscore"),
            Ratio(f"first score, {name}, 100 words of context / bare", f"{name} long", f"{name} bare", 1.15),
        ]
    report_ratios(args, runs, ratios, dtype=str(models.dtype))


class BareModels:
    """The models of a scorer run by transformers, on padded batches of texts of similar length."""

    def __init__(self, scorer: MarsScorer) -> None:
        models = scorer.settings.models
        # Loaded anew, because MARS changes the attention of its own language model.
        encoder = load_model("encoder", models.encoder, models.dtype, scorer.runtime)
        self._encoder, self._encoder_tokenizer = encoder[0].auto_model, encoder.tokenizer
        parts = load_model("language_model", models.language_model, models.dtype, scorer.runtime)
        self._language_model, self._tokenizer = parts
        self._tokenizer.pad_token = self._tokenizer.pad_token or self._tokenizer.eos_token
        self.dtype = self._encoder.dtype

    @torch.inference_mode()
    def read(self, texts: list[Text], with_language_model: bool) -> None:
        """Do all forward passes that a score needs."""
        candidates, references, contexts = columns(texts)
        for batch in _batches([*candidates, *references, *contexts]):
            self._encoder(**self._encoder_tokenizer(batch, padding=True, return_tensors="pt"))
        for pairs in _batches(list(zip(references, candidates, strict=True))):
            ids = self._encoder_tokenizer(*map(list, zip(*pairs, strict=True)), padding=True, return_tensors="pt")
            self._encoder(**ids)
        if with_language_model:
            following = [f"{context} {text}" for context, text in zip(contexts, candidates, strict=True)]
            for batch in _batches([*following, *candidates]):
                self._log_probabilities(batch, max(len(self._tokenizer(text)["input_ids"]) for text in candidates))

    def _log_probabilities(self, batch: list[str], last: int) -> None:
        """Compute the log probabilities of the ``last`` tokens."""
        ids = self._tokenizer(batch, padding=True, padding_side="left", return_tensors="pt")
        logits = self._language_model(**ids, logits_to_keep=last, use_cache=False).logits.float()
        labels = ids["input_ids"][:, -logits.shape[1] :, None]
        log_softmax(logits, -1).gather(-1, labels)


def _batches(texts: list[Any]) -> Iterable[list[Any]]:
    """Yield batches of texts, or pairs, of similar length."""

    def words(text: Any) -> int:
        return len(text.split()) if isinstance(text, str) else sum(map(words, text))

    batch: list[Any] = []
    for text in sorted(texts, key=words):
        if batch and (len(batch) + 1) * words(text) > WORDS:
            yield batch
            batch = []
        batch.append(text)
    yield batch


if __name__ == "__main__":
    main()
