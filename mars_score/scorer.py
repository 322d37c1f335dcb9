"""MarsScorer: references are augmented, texts are read, and candidates are scored."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, compress, islice
from typing import Any

from mars_score.cache import ResultStore, Store, store_folder
from mars_score.data.frames import columns_of, is_tabular
from mars_score.data.validation import Row, check_candidate_lists, check_rows
from mars_score.errors import NOT_TOLD, Notices, warn
from mars_score.infilling.augmented import AugmentedReference, notices_of
from mars_score.infilling.augmenter import Augmenter, prepare_rows
from mars_score.learning.heads import LearnedHead, check_fits, load_head, read_head
from mars_score.metrics.explain import explain
from mars_score.metrics.explanation import Explanation
from mars_score.metrics.idf import Idf
from mars_score.models.devices import check_device
from mars_score.models.fingerprints import unchanging
from mars_score.models.served import is_served, served_model
from mars_score.models.signature import make_signature
from mars_score.progress import Progress, Runtime, progress_bars
from mars_score.sampling.samples import ContextSampler, Request, Samples, make_request
from mars_score.scoring.batch import Batch, read_batches, scorable_row
from mars_score.scoring.evidence import Reader
from mars_score.scoring.form import Form
from mars_score.scoring.result import MarsResult, RowScore, ScoredTexts
from mars_score.scoring.row import Example
from mars_score.scoring.rows import row_results
from mars_score.settings import Settings, resolve_settings
from mars_score.settings.options import learned_head

_LOADED = ("_augmenter", "_sampler", "_reader", "_head")  # made when first needed
_CHUNK_ROWS = 512  # rows scored together; bounds the memory of token vectors


class MarsScorer:
    """Scores candidates by their similarity with augmented references.

    Models are loaded when they are first needed and stay loaded until :meth:`free`.

    Args:
        preset: which models: ``"mini"``, ``"base"`` (default), ``"paper"`` or ``"multilingual"``.
        batch_size: jobs (a reference at one mask ratio) that the language model infills together, at most;
            None: chosen from device and free memory.
        encoder_batch_size: texts per forward pass of the sentence encoder, at most; None: 32.
        device: ``"cpu"``, ``"cuda"``, ...; None: CUDA if there is one, else the CPU.
        store: folder for results and converted models; None: the user's cache folder (or ``MARS_STORE``), False:
            save nothing.
        progress: True: progress bars on standard error; a function: called as ``progress(stage, done, total)``,
            where a total of 0 is not known.
        settings: any setting of :mod:`mars_score.settings`, by name.

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
        folder = learned_head("learned", settings.get("learned"))
        self.head_folder = head = read_head(folder) if folder else None
        if head:
            settings["learned"] = head.fingerprint
        self.settings: Settings = resolve_settings(preset, trained=head.settings if head else None, **settings)
        if head:
            check_fits(head, self.settings)
        check_device(device)
        results, self._reports = ResultStore(store_folder(store)), _Reports(progress)
        self.runtime = Runtime(batch_size, encoder_batch_size, device, results, self._reports)

    def __repr__(self) -> str:
        usual = dict(resolve_settings("base", self.settings.variant).items())
        for name in ("variant", "language_model", "encoder"):  # shown always, others where they differ
            del usual[name]
        shown = (item for item in self.settings.items() if item not in usual.items())
        return f"MarsScorer({', '.join(f'{name}={_shown(value)}' for name, value in shown)})"

    @unchanging()
    def score(
        self,
        predictions: Any,
        references: Any = None,
        contexts: Any = None,
        *,
        samples: Any = None,
        columns: Mapping[str, str | None] | None = None,
        explain: bool = False,
    ) -> MarsResult:
        """Score candidates.

        Args:
            predictions: one candidate per row, stripped of outer whitespace; a blank one scores 0.0. Or a list of
                candidates, which are scored each. Or, alone, a table (see
                :func:`mars_score.data.frames.columns_of`).
            references: a string or a list of strings per row; None: candidates are scored given their contexts
                alone, as variants ``"plus"`` and ``"fast"`` can.
            contexts: per row a string; a list of strings, the turns of a dialogue, which become the lines of one;
                chat messages ``[{"role": ..., "content": ...}]``; or retrieved passages ``{"passages": [...]}``,
                each read by itself. May be left out with ``use_context=False``.
            samples: per row a text or a list of texts that others than the scored system wrote for the context,
                such as a good language model; None, "" or an empty list: none. One that is the candidate itself
                is left out.
            columns: what the columns of a table are called, such as ``{"reference": "answer"}``; samples are
                taken from a table only if their column is named.
            explain: also say why each score is what it is: ``explanations`` of the result.

        Returns:
            Scores, mostly in [0, 1], higher is better, with all their details. A text that repeats itself or,
            with ``likelihood_weight`` above 0, that the language model finds unlikely may score below 0.

        Raises:
            TypeError, ValueError: bad input, named with its row, before any model is loaded; no rows.
            ModelUnavailableError: a model cannot be loaded.
        """
        if references is None and contexts is None and samples is None and is_tabular(predictions):
            table = columns_of(predictions, columns, use_context=self.settings.use_context)
            predictions, references, contexts, samples = table
        elif columns is not None:
            raise TypeError("columns names the columns of a table; pass the table alone, or leave columns out")
        all_candidates = check_candidate_lists(predictions)
        settings = self.settings_for(references, samples)
        all_references, all_contexts, all_samples = check_rows(
            references, contexts, samples, use_context=settings.use_context, predictions=all_candidates
        )
        if not all_candidates:
            raise ValueError("there is nothing to score: predictions is empty")
        numbers = [number for number, candidates in enumerate(all_candidates) for _ in candidates]
        rows = [
            Row(candidate.strip(), all_references[number], all_contexts[number].strip(), all_samples[number])
            for number, candidate in zip(numbers, chain.from_iterable(all_candidates), strict=True)
        ]
        with self._reports.bars():
            scores = tuple(self._score(prepare_rows(rows, settings.masking), settings))
            explanations = self._explain(rows, scores) if explain else ()
        origin = "" if samples is None else "given"
        signature = make_signature(settings, [len(row.references) for row in rows], origin)
        texts = tuple(ScoredTexts(number, *row[:3]) for number, row in zip(numbers, rows, strict=True))
        notices = _warn(numbers, [row.notices for row in scores])
        if settings.similarity.likelihood_weight != self.settings.similarity.likelihood_weight:
            warn(NOT_TOLD)
            notices = (NOT_TOLD, *notices)
        return MarsResult(scores, signature, notices, texts, explanations)

    def settings_for(self, references: Any, samples: Any = None) -> Settings:
        """The settings that count; without the likelihood where a server does not tell it.

        Args and errors as for :meth:`mars_score.settings.Settings.given`. ValueError: a learned head needs
        references; ServerError: a server cannot be asked.
        """
        settings, head = self.settings.given(references, samples), self.head_folder
        if references is None and head and head.kind == "terms":
            raise ValueError(f"{head.path}: this head needs references; give them, or leave learned out")
        model, similarity = settings.models.language_model, settings.similarity
        if similarity.likelihood_weight and is_served(model) and served_model(model).read is None:
            return replace(settings, similarity=replace(similarity, likelihood_weight=0.0))
        return settings

    @unchanging()
    def augment(self, references: Any, contexts: Any = None) -> list[list[str]]:
        """The references of each row, their infills and the samples of its context: references for any metric.

        Without repetitions. Args and errors as for :meth:`score`.
        """
        settings = self.settings.given(references)
        columns = check_rows(references, contexts, use_context=settings.use_context)
        rows = [Row("", *texts) for texts in zip(*columns, strict=True)]
        augmented = self.augment_rows(prepare_rows(rows, settings.masking))
        _warn(range(len(augmented)), [notices_of(row) for row, _ in augmented])
        return [
            list(dict.fromkeys([*(text for reference in row for text in reference.texts), *samples.texts]))
            for row, samples in augmented
        ]

    @unchanging()
    def examples(self, rows: Sequence[Row]) -> list[Example]:
        """Rows as a learned head sees them, for training one.

        Args:
            rows: with candidates and references, none of them blank.
        """
        prepared = prepare_rows(rows, self.settings.masking)
        with self._reports.bars():
            batches = self._read(prepared, self.settings)
            return [example for batch in batches for example in batch.examples(batch.own_scores()).values()]

    @unchanging()
    def score_rows(
        self, rows: Sequence[Row], idf: Idf | None = None, *, with_references: bool = True
    ) -> list[RowScore]:
        """The scores of rows that are a part of more, as in a run over a file; they are not checked again.

        Args:
            rows: checked, with prepared references.
            idf: counted over all references; None: over those of these rows, or of the corpus of the settings.
            with_references: False: by their contexts alone.
        """
        with self._reports.bars():
            return self._score(rows, self.settings_for(() if with_references else None), idf)

    @unchanging()
    def augment_rows(
        self, rows: Sequence[Row], idf: Idf | None = None
    ) -> list[tuple[list[AugmentedReference], Samples]]:
        """The augmented references of each row and the samples of its context; args as for :meth:`score_rows`."""
        with self._reports.bars():
            augmented = self._augment(rows, idf, blank_too=True)
            requests, samples = self._draw(rows, [True] * len(rows))
        return [(row, samples[request]) for row, request in zip(augmented, requests, strict=True)]

    def explain_rows(
        self, rows: Sequence[Row], idf: Idf | None = None, *, with_references: bool = True
    ) -> tuple[Explanation, ...]:
        """Why rows have their scores; args as for :meth:`score_rows`."""
        return self._explain(rows, self.score_rows(rows, idf, with_references=with_references))

    def _explain(self, rows: Sequence[Row], scores: Sequence[RowScore]) -> tuple[Explanation, ...]:
        return explain(rows, scores, self._reader, Form.of(self.settings))

    def free(self) -> None:
        """Release the models; they are loaded again when needed."""
        for name in _LOADED:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is loaded again when needed."""
        return {name: value for name, value in vars(self).items() if name not in _LOADED}

    def _score(self, rows: Sequence[Row], settings: Settings, idf: Idf | None = None) -> list[RowScore]:
        """The scores of prepared rows, stored or new."""

        def compute(missing: list[Row], done: Callable[[Row, RowScore], None]) -> None:
            head, rest = self._head, iter(missing)
            for batch in self._read(missing, settings, idf):
                for scored, row in zip(batch.scored(head), rest, strict=False):
                    done(row, scored)

        scored = row_results(settings, compute).read(self.runtime.store, rows)
        return [scored[row] for row in rows]

    def _read(self, rows: Sequence[Row], settings: Settings, idf: Idf | None = None) -> Iterator[Batch]:
        """Prepared rows with their augmented references and samples, and what is read of them."""
        augmented = self._augment(rows, idf)
        requests, drawn = self._draw(rows, [bool(row.candidate) and not row.samples for row in rows])
        scorable = [
            scorable_row(row, references, request, drawn, use_context=settings.use_context)
            for row, references, request in zip(rows, augmented, requests, strict=True)
        ]
        return read_batches(scorable, Form.of(settings), self._reader, _CHUNK_ROWS, self._reports)

    def _augment(
        self, rows: Sequence[Row], idf: Idf | None, *, blank_too: bool = False
    ) -> list[list[AugmentedReference]]:
        """Augmented references, of blank candidates with ``blank_too`` only; all references count for the IDF."""
        pairs = [
            [(row.context, text) for text in row.references] if row.candidate or blank_too else [] for row in rows
        ]
        others = [text for row in rows for text in row.references]
        augmented = self._augmenter.augment(list(chain.from_iterable(pairs)), others, idf)
        return [[augmented[pair] for pair in row] for row in pairs]

    def _draw(self, rows: Sequence[Row], needed: Sequence[bool]) -> tuple[list[Request], dict[Request, Samples]]:
        """The request of each row, and the samples of those that are ``needed``."""
        requests = [make_request(row.context, row.references, self.settings.sampling) for row in rows]
        return requests, self._sampler.draw([*compress(requests, needed)], partial(self._reports, "sample"))

    @cached_property
    def _head(self) -> LearnedHead | None:
        head = self.head_folder
        return None if head is None else load_head(head, self.settings, self.runtime)

    @cached_property
    def _augmenter(self) -> Augmenter:
        return Augmenter(self.settings, self.runtime)

    @cached_property
    def _sampler(self) -> ContextSampler:
        return ContextSampler(self.settings, self.runtime)

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.settings, self.runtime)


def score(
    predictions: Any,
    references: Any = None,
    contexts: Any = None,
    *,
    columns: Mapping[str, str | None] | None = None,
    **settings: Any,
) -> MarsResult:
    """:meth:`MarsScorer.score` of a new scorer with these settings; models that are named stay loaded."""
    return MarsScorer(**settings).score(predictions, references, contexts, columns=columns)


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
        chunk_size: rows that are read before the first of them is yielded.
        settings: the arguments of :class:`MarsScorer`. Variants that mask words need ``idf_corpus``, as a stream
            has no references of a whole call to count IDF over.

    Yields:
        A record per candidate, as in :meth:`MarsResult.to_records`; ``"row"`` counts through the stream.

    Raises:
        ValueError: ``idf_corpus`` is needed, or ``chunk_size`` is below 1; raised by the call itself.
        TypeError, ValueError: bad input, named with its row within a chunk and the rows before the chunk.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
    scorer = MarsScorer(**settings)
    masking = scorer.settings.masking
    if masking.max_mask_ratio != 0 and masking.idf_corpus is None:
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
    """What ``progress`` of a scorer asks for; not a part of the scorer, which its runtime would keep in memory."""

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
        with progress_bars(quiet=False) if self._has_bars else nullcontext(self._report) as self._report:
            yield


def _warn(numbers: Iterable[int], of_rows: Iterable[frozenset[str]]) -> tuple[str, ...]:
    """One sentence and one warning per kind of notice; the rows are named by ``numbers``."""
    notices = Notices()
    for number, of_row in zip(numbers, of_rows, strict=True):
        notices.add(number, of_row)
    for sentence in notices.sentences():
        warn(sentence)
    return notices.sentences()


def _shown(value: Any) -> str:
    """A short form of a setting's value; of a model that is an object its class."""
    if isinstance(value, (str, os.PathLike)):
        return repr(os.fspath(value))
    model = value[0] if isinstance(value, tuple) and len(value) == 2 else value
    return f"<{type(model).__name__}>" if hasattr(model, "state_dict") else reprlib.repr(value)
