"""MarsScorer, the main entry point: check rows, call the models, compute the score."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from itertools import chain, islice
from typing import Any

from mars_score.aspects import find_aspects
from mars_score.cache import ResultStore, Store, store_folder
from mars_score.data.cleaning import prepare_row
from mars_score.data.frames import columns_of, in_memory, is_tabular
from mars_score.data.validation import check_candidate_lists, check_rows
from mars_score.errors import BLANK, BLANK_CONTEXT, CANDIDATE_TOKENS, OWN_SAMPLE, Notices, warn
from mars_score.explain import explain
from mars_score.explanation import Explanation
from mars_score.features import augment_references, paper_similarities, plus_features
from mars_score.metrics.paper import Idf, PaperConfig, paper, reference_score
from mars_score.metrics.plus import plus
from mars_score.models.calls import ModelCalls
from mars_score.models.running import Runtime, check_device
from mars_score.models.tagger import Tagger
from mars_score.progress import Progress, progress_bars
from mars_score.results import MarsResult
from mars_score.rows import AugmentedReference, ReferenceScore, Row, RowScore, SampleScore, weighted_sum
from mars_score.settings import Settings, resolve_settings
from mars_score.signature import make_signature

_LOADED = ("calls", "_tagger", "_head")  # made when first needed
CHUNK_SIZE = 512  # rows scored together; bounds the memory of token vectors


class MarsScorer:
    """Scores candidates by their references and contexts.

    Models are loaded when they are first needed and stay loaded until :meth:`free`.

    Args:
        preset: which models: ``"mini"``, ``"medium"``, ``"base"`` (default), ``"paper"`` or ``"multilingual"``.
        batch_size: infills that the language model generates together, at most; None: chosen from device and free
            memory.
        encoder_batch_size: texts per forward pass of the sentence encoder, at most; None: 32.
        device: ``"cpu"``, ``"cuda"``, ...; None: CUDA if there is one, else the CPU.
        store: folder for model outputs and converted models; None: the user's cache folder (or ``MARS_STORE``),
            False: save nothing.
        progress: True: progress bars on standard error; a function: called as ``progress(stage, done, total)``,
            where a total of 0 is not known.
        settings: any setting of :mod:`mars_score.settings`, by name, such as ``variant="plus"``.

    Raises:
        ValueError: an unknown preset or variant, or a value out of range or without effect; a learned head that is
            damaged, or was trained with other models or settings.
        FileNotFoundError: there is no such learned head.
        TypeError: an unknown setting.
    """

    def __init__(
        self,
        preset: str | None = None,
        *,
        batch_size: int | None = None,
        encoder_batch_size: int | None = None,
        device: str | None = None,
        store: Store = None,
        progress: Progress | bool | None = None,
        **settings: Any,
    ) -> None:
        self.head_folder = _learning().read_head(settings["learned"]) if settings.get("learned") else None
        trained = self.head_folder.settings if self.head_folder else None
        self.settings: Settings = resolve_settings(preset, trained=trained, **settings)
        if self.head_folder:
            _learning().check_fits(self.head_folder, self.settings)
            self.settings = replace(self.settings, learned=self.head_folder.fingerprint)
        check_device(device)
        results, self._reports = ResultStore(store_folder(store)), _Reports(progress)
        self.runtime = Runtime(batch_size, encoder_batch_size, device, results, self._reports)

    def __repr__(self) -> str:
        usual = dict(resolve_settings("base", self.settings.variant).items())
        for name in ("variant", "language_model", "encoder"):  # shown always, others where they differ
            del usual[name]
        shown = (item for item in self.settings.items() if item not in usual.items())
        return f"MarsScorer({', '.join(f'{name}={_shown(value)}' for name, value in shown)})"

    def score(
        self,
        predictions: Any,
        references: Any = None,
        contexts: Any = None,
        *,
        samples: Any = None,
        tasks: Any = None,
        columns: Mapping[str, str | None] | None = None,
        explain: bool = False,
    ) -> MarsResult:
        """Score candidates.

        Args:
            predictions: one candidate per row, stripped of outer white space; a blank one scores 0.0. Or a list of
                candidates, each of which is scored on its own. Or, alone, a table: see
                :func:`mars_score.data.frames.columns_of`.
            references: a string or a list of strings per row; None: candidates are scored by their contexts
                alone, as variants ``"plus"`` and ``"fast"`` can.
            contexts: per row a string; a list of strings or of chat messages ``{"role": ..., "content": ...}``,
                which is a dialogue; retrieved passages ``{"passages": [...]}``, if need be with a ``"question"``,
                each encoded by itself; or any other dict, a record. May be left out with ``use_context=False``.
            samples: per row a text or a list of texts that others than the scored system wrote for the context,
                such as a good language model; None, "" or an empty list: none. One that is the candidate itself
                is left out.
            tasks: per row, or for all, what the context is: ``"text"``, ``"summary"``, ``"dialogue"`` or
                ``"data"``; None: as the type of the context says, else the setting ``task``.
            columns: names of the columns of a table, such as ``{"reference": "answer"}``; samples and tasks are
                taken from a table only if their column is named.
            explain: also say why each score is what it is: ``explanations`` of the result.

        Returns:
            Scores, mostly in [0, 1], higher is better, with all their details. A text that repeats or contradicts,
            or that the language model finds unlikely, may score below 0.

        Raises:
            TypeError, ValueError: bad input, named with its row, before any model is loaded; no rows.
            ModelUnavailableError: a model cannot be loaded.
        """
        if references is None and contexts is None and samples is None:
            predictions = in_memory(predictions)
            if is_tabular(predictions):
                table = columns_of(predictions, columns, use_context=self.settings.use_context)
                predictions, references, contexts, samples, _ = table
                tasks, columns = _only_tasks(tasks, table[-1]), None
        if columns is not None:
            raise TypeError("columns names the columns of a table; pass the table alone, or leave columns out")
        numbers, rows = self._check(predictions, references, contexts, samples, tasks)
        with self._reports.bars():
            scores = tuple(self._score(rows))
            explanations = self._explain(rows, scores) if explain else ()
        signature = make_signature(
            self.settings,
            [len(row.references) for row in rows],
            "" if samples is None else "given",
            {row.task for row in rows},
            self.runtime.device,
        )
        notices = _warn(numbers, [row.notices for row in scores])
        if len(rows) >= 3 * len(set(numbers)) and all(len(row.candidate.split()) == 1 for row in rows):
            warn(CANDIDATE_TOKENS)
            notices = (*notices, CANDIDATE_TOKENS)
        return MarsResult(scores, signature, notices, tuple(rows), tuple(numbers), explanations)

    def augment(self, references: Any, contexts: Any = None) -> list[list[str]]:
        """Return the references of each row and their infills, for any metric, without repetitions.

        Args and errors as for :meth:`score`; ValueError: the variant masks nothing.
        """
        self.check_inputs(references)
        if not self.settings.masks:
            variant = self.settings.variant
            raise ValueError(
                f"variant {variant!r} masks nothing with these settings; choose variant='paper' with "
                "max_mask_ratio above 0"
            )
        rows = check_rows(references, contexts, use_context=self.settings.use_context)
        augmented = self.augment_rows(rows)
        _warn(range(len(rows)), [_notices_of(row) for row in augmented])
        return [list(dict.fromkeys(text for one in row for text in one.texts)) for row in augmented]

    def _check(self, predictions: Any, *columns: Any) -> tuple[list[int], list[Row]]:
        """Return a row for each candidate, and the number of its input row; ``columns`` as for ``check_rows``."""
        candidate_lists = check_candidate_lists(predictions)
        self.check_inputs(columns[0], columns[2])
        settings = self.settings
        inputs = check_rows(
            *columns, use_context=settings.use_context, task=settings.task, predictions=candidate_lists
        )
        if not candidate_lists:
            raise ValueError("there is nothing to score: predictions is empty")
        numbers = [number for number, candidates in enumerate(candidate_lists) for _ in candidates]
        texts = chain.from_iterable(candidate_lists)
        rows = [
            inputs[number]._replace(candidate=text.strip()) for number, text in zip(numbers, texts, strict=True)
        ]
        return numbers, rows

    def check_inputs(self, references: Any, samples: Any = None) -> None:
        """Raise ValueError where rows without references (None), or samples (not None), cannot be scored."""
        self.settings.check_inputs(references, samples)
        if references is None and self.head_folder and self.head_folder.kind == "terms":
            raise ValueError(
                f"{self.head_folder.path}: this head needs references; give them, or leave learned out"
            )

    def prepare(self, rows: Iterable[Row]) -> list[Row]:
        """Return checked rows as they are scored, after ``clean`` and ``strip_urls_hashtags``."""
        return [self._prepare(row)[0] for row in rows]

    def _prepare(self, row: Row) -> tuple[Row, frozenset[str]]:
        """Prepare a row, and find the kinds of notices that its texts alone call for."""
        config = self.settings.config
        strip_urls = isinstance(config, PaperConfig) and config.strip_urls_hashtags
        prepared, notices = prepare_row(row, clean=self.settings.clean, strip_urls=strip_urls)
        flags = {
            BLANK: not prepared.candidate,
            BLANK_CONTEXT: self.settings.use_context and not prepared.context,
            OWN_SAMPLE: bool(prepared.candidate) and prepared.candidate in prepared.samples,
        }
        others = tuple(text for text in prepared.samples if text != prepared.candidate)
        return prepared._replace(samples=others), notices.union(notice for notice, flag in flags.items() if flag)

    def score_rows(self, rows: Sequence[Row], idf: Idf | None = None) -> list[RowScore]:
        """Score checked rows, which may be a part of more.

        Args:
            rows: see :func:`mars_score.data.validation.check_rows`.
            idf: counted over all references; None: over those of these rows, or of ``idf_corpus``.
        """
        with self._reports.bars():
            return self._score(rows, idf)

    def augment_rows(self, rows: Sequence[Row], idf: Idf | None = None) -> list[list[AugmentedReference]]:
        """Augment the references of checked rows; args as for :meth:`score_rows`."""
        with self._reports.bars():
            return self._augment(self.prepare(rows), idf, blank_too=True)

    def explain_rows(self, rows: Sequence[Row], idf: Idf | None = None) -> tuple[Explanation, ...]:
        """Explain the scores of rows; args as for :meth:`score_rows`."""
        return self._explain(rows, self.score_rows(rows, idf))

    def free(self) -> None:
        """Release the models; they are loaded again when needed."""
        for name in _LOADED:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is loaded again when needed."""
        return {name: value for name, value in vars(self).items() if name not in _LOADED}

    @cached_property
    def calls(self) -> ModelCalls:
        """The models of the settings, loaded when first called."""
        return ModelCalls(self.settings.models, self.runtime)

    @cached_property
    def _tagger(self) -> Tagger:
        return Tagger(self.settings.language)

    @cached_property
    def _head(self) -> Any:
        return _learning().load_head(self.head_folder, self.settings, self.calls) if self.head_folder else None

    def _score(self, rows: Sequence[Row], idf: Idf | None = None) -> list[RowScore]:
        prepared = [self._prepare(row) for row in rows]
        rows = [row for row, _ in prepared]
        is_paper = isinstance(self.settings.config, PaperConfig)
        scores = self._score_paper(rows, idf) if is_paper else self._score_plus(rows)
        scores = [
            replace(score, notices=score.notices | notices)
            for score, (_, notices) in zip(scores, prepared, strict=True)
        ]
        if self._head is not None:
            written = [index for index, row in enumerate(rows) if row.candidate]
            features = self._head.features(
                [rows[index] for index in written], [scores[index] for index in written]
            )
            for index, terms in zip(written, self._head.score(features), strict=True):
                scores[index] = replace(scores[index], score=weighted_sum(terms), terms=terms)
        for row, score in zip(rows, scores, strict=True):
            if not math.isfinite(score.score):
                fault = f"the score of {row.candidate!r:.60} is {score.score}, no finite number"
                raise ValueError(f"{fault}; a model or head of these settings gives such values: use another")
        return scores

    def _score_plus(self, rows: Sequence[Row]) -> list[RowScore]:
        config, scores = self.settings.plus, []
        for start in range(0, len(rows), CHUNK_SIZE):
            for features, notices in plus_features(rows[start : start + CHUNK_SIZE], config, self.calls):
                row = features.row
                if not row.candidate:
                    scores.append(RowScore(0.0, notices=notices))
                    continue
                terms = plus(features, config)
                references = tuple(
                    ReferenceScore(AugmentedReference(text), (recall,), recall)
                    for text, recall in zip(row.references, features.recalls, strict=True)
                )
                samples = tuple(map(SampleScore, row.samples, features.sample_recalls))
                aspects = find_aspects(terms, features.log_p, features.judgements)
                scores.append(RowScore(weighted_sum(terms), terms, references, samples, notices, aspects))
        return scores

    def _score_paper(self, rows: Sequence[Row], idf: Idf | None) -> list[RowScore]:
        config, scores = self.settings.paper, []
        augmented = self._augment(rows, idf)
        found = paper_similarities(list(zip((row.candidate for row in rows), augmented, strict=True)), self.calls)
        for row, references, (similarities, notices) in zip(rows, augmented, found, strict=True):
            notices |= _notices_of(references)
            if not row.candidate:
                scores.append(RowScore(0.0, notices=notices))
                continue
            compared = tuple(
                ReferenceScore(reference, values, reference_score(values, config.q))
                for reference, values in zip(references, similarities, strict=True)
            )
            terms = paper([one.score for one in compared], config)
            aspects = find_aspects(terms)
            scores.append(RowScore(weighted_sum(terms), terms, compared, notices=notices, aspects=aspects))
        return scores

    def _augment(
        self, rows: Sequence[Row], idf: Idf | None, *, blank_too: bool = False
    ) -> list[list[AugmentedReference]]:
        """Augment references, those of blank candidates only if ``blank_too``; all of them count for the IDF."""
        pairs = [
            [(row.context, text) for text in row.references] if row.candidate or blank_too else [] for row in rows
        ]
        corpus = (text for row in rows for text in row.references)
        augmented = augment_references(
            chain.from_iterable(pairs), idf, corpus, self.settings.paper, self.calls, self._tagger
        )
        return [[augmented[pair] for pair in row] for row in pairs]

    def _explain(self, rows: Sequence[Row], scores: Sequence[RowScore]) -> tuple[Explanation, ...]:
        return explain(self.prepare(rows), scores, self.settings, self.calls)


def score(
    predictions: Any,
    references: Any = None,
    contexts: Any = None,
    *,
    samples: Any = None,
    tasks: Any = None,
    columns: Mapping[str, str | None] | None = None,
    explain: bool = False,
    **settings: Any,
) -> MarsResult:
    """Score by :meth:`MarsScorer.score` of a new scorer with these settings; models given by name stay loaded."""
    options: dict[str, Any] = {"samples": samples, "tasks": tasks, "columns": columns, "explain": explain}
    return MarsScorer(**settings).score(predictions, references, contexts, **options)


def score_iter(
    rows: Iterable[Mapping[str, Any]],
    *,
    columns: Mapping[str, str | None] | None = None,
    chunk_size: int = 64,
    **settings: Any,
) -> Iterator[dict[str, Any]]:
    """Score a stream of any length, ``chunk_size`` rows at a time.

    Args:
        rows: dicts with ``"prediction"``, ``"reference"`` and ``"context"``.
        columns: their names where they differ, as for :meth:`MarsScorer.score`.
        chunk_size: rows that are taken from the stream before the first of them is yielded.
        settings: the arguments of :class:`MarsScorer`. `paper` needs ``idf_corpus``, as a stream has no references
            of a whole call to count IDF over.

    Yields:
        A record per candidate, as in :meth:`MarsResult.to_records`; ``"row"`` counts through the stream.

    Raises:
        ValueError: ``idf_corpus`` is needed, or ``chunk_size`` is below 1; raised by the call itself.
        TypeError, ValueError: bad input, named with its row within a chunk and the rows before the chunk.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
    scorer = MarsScorer(**settings)
    if scorer.settings.counts_idf:
        raise ValueError(
            f"variant {scorer.settings.variant!r} counts IDF over all references, which a stream does not have: "
            "pass some as idf_corpus=[...], or set max_mask_ratio=0"
        )

    def records() -> Iterator[dict[str, Any]]:
        done, stream = 0, iter(rows)
        while chunk := list(islice(stream, chunk_size)):
            try:
                result = scorer.score(chunk, columns=columns)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{error} (of the rows from {done} on)") from None
            yield from ({**record, "row": done + record["row"]} for record in result.to_records())
            done += len(chunk)

    return records()


class _Reports:
    """Reports progress; a separate object, so that the runtime does not hold a reference to the scorer."""

    def __init__(self, progress: Progress | bool | None) -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise ValueError(f"progress must be True, False or a function, got {progress!r}")
        self._has_bars = progress is True
        self._report = None if isinstance(progress, bool) else progress

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._report:
            self._report(stage, done, total)

    @contextmanager
    def bars(self) -> Iterator[None]:
        """Show progress bars meanwhile, if ``progress`` is True."""
        given = self._report
        try:
            with progress_bars(quiet=False) if self._has_bars else nullcontext(given) as self._report:
                yield
        finally:
            self._report = given  # A function of bars cannot be pickled.


def _learning() -> Any:
    """Import learned heads, which are a layer above the scorer, only for a scorer that has one."""
    return import_module("mars_score.learning.heads")


def _only_tasks(given: Any, column: Any) -> Any:
    """Return the tasks given beside a table, or its column of them; TypeError: there are both."""
    if given is not None and column is not None:
        raise TypeError("tasks are given twice, by a column of the table and by tasks; leave one out")
    return column if given is None else given


def _notices_of(references: Iterable[AugmentedReference]) -> frozenset[str]:
    return frozenset().union(*(reference.notices for reference in references))


def _warn(numbers: Iterable[int], row_notices: Iterable[frozenset[str]]) -> tuple[str, ...]:
    """Issue one sentence and one warning per kind of notice; the rows are named by ``numbers``."""
    notices = Notices()
    for number, kinds in zip(numbers, row_notices, strict=True):
        notices.add(number, kinds)
    for sentence in notices.sentences():
        warn(sentence)
    return notices.sentences()


def _shown(value: Any) -> str:
    """Write a short form of a setting's value; of a model that is an object its class."""
    if isinstance(value, (str, os.PathLike)):
        return repr(os.fspath(value))
    model = value[0] if isinstance(value, tuple) and len(value) == 2 else value
    return f"<{type(model).__name__}>" if hasattr(model, "state_dict") else reprlib.repr(value)
