"""The scorer behind the Space: requests share the loaded models."""

from __future__ import annotations

import heapq
import logging
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from mars_score.augment.sampling.samples import ContextSampler, make_request
from mars_score.errors import MarsWarning
from mars_score.scorer import MarsScorer
from mars_score.scoring.evidence import Reader
from mars_score.scoring.explain.explainer import explain
from mars_score.scoring.explain.explanation import Explanation
from mars_score.scoring.result import MarsResult
from mars_score.space.answer import Answer, Asked
from mars_score.space.choices import PRESET, VARIANT, Choices
from mars_score.space.inputs import Question
from mars_score.space.uploads import Batch

_log = logging.getLogger(__name__)
_CHUNK = 8  # rows of a batch that are scored before other requests get a turn


class Engine:
    """Scores for many visitors.

    Models are used by one thread at a time (``mars_score.models.torch_modes``). Batches come in chunks, and
    other requests are computed in between.
    """

    def __init__(self) -> None:
        self.ready = threading.Event()

    def score(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        contexts: Sequence[str],
        choices: Choices,
        *,
        explain: bool = False,
    ) -> MarsResult:
        """Scores of rows, all of them with references or all without; IDF is counted over the references."""
        given = [list(row) for row in references] if any(references) else None
        return self._scorer(choices).score(list(candidates), given, list(contexts), explain=explain)

    def ask(self, question: Question, choices: Choices, *, explain: bool = True) -> MarsResult:
        """Scores of all candidates of a question."""
        count = len(question.candidates)
        columns = question.candidates, [question.references] * count, [question.context] * count
        return self.score(*columns, choices, explain=explain)

    def answer(self, question: Question, choices: Choices, *, compared: bool = True) -> Answer:
        """All that is shown for a question.

        Args:
            question: the texts.
            choices: the settings.
            compared: also score without what the language model wrote.
        """
        result = self.ask(question, choices)
        written = compared and any(
            row.samples or any(one.augmented.augmentations for one in row.references) for row in result.rows
        )
        less = choices.without_augmentations if written else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MarsWarning)  # the same as of the first scores
            alone = self.ask(question, less, explain=False) if less else None
        return Answer.of(question, result, self._asked(question, choices), alone)

    def lowest(
        self, batch: Batch, result: MarsResult, choices: Choices, count: int
    ) -> list[tuple[int, Explanation]]:
        """The rows of a batch with the lowest scores, from 0 and the lowest first, with their explanations."""
        settings = self._scorer(choices).settings.given(batch.references if any(batch.references) else None)
        reader = Reader(settings, self._scorer(choices).runtime)
        indices = heapq.nsmallest(count, range(len(result.scores)), key=result.scores.__getitem__)
        texts = [result.texts[index] for index in indices]
        candidates, contexts = [one.candidate for one in texts], [one.context for one in texts]
        rows = [result.rows[index] for index in indices]
        return list(zip(indices, explain(candidates, contexts, rows, reader, settings.similarity), strict=True))

    def _asked(self, question: Question, choices: Choices) -> Asked | None:
        """What the language model was asked to write; None: nothing, by the settings."""
        sampling = self._scorer(choices).settings.sampling
        if not (choices.use_context and sampling.samples):
            return None
        request = make_request(question.context.strip(), question.references, sampling)
        prompt = self._sampler.prompt(request) if request.wanted else ""
        return Asked(request.task, by_form=sampling.task is None, prompt=prompt)

    @cached_property
    def _sampler(self) -> ContextSampler:
        """For prompts, which depend on no choice but the task."""
        scorer = MarsScorer(PRESET, variant=VARIANT)
        return ContextSampler(scorer.settings, scorer.runtime)

    def prepare(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        contexts: Sequence[str],
        choices: Choices,
    ) -> Iterator[tuple[int, int]]:
        """Score the rows of a batch chunk by chunk, so that :meth:`score` finds samples and infills in the store.

        Yields:
            How many rows are done, and how many there are.
        """
        # IDF is counted over the whole batch, as it is when the batch is scored.
        corpus = list(dict.fromkeys(text for row in references for text in row))
        scorer = self._scorer(choices, **({"idf_corpus": corpus} if corpus and choices.max_mask_ratio else {}))
        for start in range(0, len(candidates), _CHUNK):
            yield start, len(candidates)
            chunk = slice(start, start + _CHUNK)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MarsWarning)  # score() issues them for the whole batch
                given = list(map(list, references[chunk])) if corpus else None
                scorer.score(list(candidates[chunk]), given, list(contexts[chunk]))
        yield len(candidates), len(candidates)

    def warm_up(self, questions: Iterable[Question]) -> None:
        """Load the models and put samples and infills of the examples into the store, in the background."""

        def run() -> None:
            try:
                for question in questions:
                    self.answer(question, Choices())
                    self.ready.set()
            except Exception:
                _log.exception("The examples could not be prepared")

        threading.Thread(target=run, name="warm-up", daemon=True).start()

    def _scorer(self, choices: Choices, **settings: Any) -> MarsScorer:
        """A scorer of these settings; all scorers of the process share its loaded models."""
        return MarsScorer(PRESET, variant=VARIANT, **choices.settings(), **settings)
