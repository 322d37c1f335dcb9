"""MarsScorer, the main entry point: it checks rows, scores them by a variant and returns a result."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, Unpack

from mars_score.cache import ResultStore, Store, store_folder
from mars_score.data.checking import check_candidate_lists, check_examples, check_rows
from mars_score.data.columns import Columns, read_table
from mars_score.data.forms import Readings
from mars_score.data.frames import CellKinds
from mars_score.errors import BY_INDEX, ColumnError, Notices, Place, warn
from mars_score.explanation import Explanation, explain
from mars_score.heads import TermsHead, check_fits, read_head
from mars_score.metrics.paper import Idf
from mars_score.models.calls import ModelCalls
from mars_score.models.running import Runtime, check_device
from mars_score.progress import Progress, Reports
from mars_score.results import MarsResult, count_notices
from mars_score.rows import AugmentedReference, Contexts, Example, Row, RowScore, Tasks, Texts, weighted_sum
from mars_score.settings import Settings, resolve_settings
from mars_score.settings_dict import ScorerDict, SettingsDict
from mars_score.signature import make_signature
from mars_score.variants.paper_variant import PaperVariant
from mars_score.variants.plus_variant import PlusVariant
from mars_score.variants.variant import Variant

VARIANTS: dict[str, type[Variant]] = {"paper": PaperVariant, "plus": PlusVariant, "fast": PlusVariant}
_LOADED = ("calls", "_head")  # cached properties with models


class MarsScorer:
    """Scores candidates by their references and contexts.

    Models are loaded when they are first needed and stay loaded until :meth:`free`.

    Args:
        preset: the models: ``"mini"`` (default of ``plus`` and ``fast``), ``"medium"``, ``"base"`` (default of
            ``paper``), ``"paper"`` or ``"multilingual"``.
        batch_size: most infills that the language model generates together. None: by device and free memory.
        encoder_batch_size: most texts per forward pass of the sentence encoder. None: 32.
        device: ``"cpu"``, ``"cuda"`` and so on. None: CUDA if available, else the CPU.
        store: folder for model outputs and converted models. None: ``MARS_STORE`` or the user's cache folder;
            False: save nothing.
        progress: True: progress bars on standard error; a function: called as ``progress(stage, done, total)``,
            with a total of 0 if it is not known.
        settings: settings of :mod:`mars_score.settings` by name; ``variant`` is ``"plus"`` by default.

    Attributes:
        settings: all settings.
        variant: the formula.
        runtime: device, batch sizes, store and progress reports.

    Raises:
        ValueError: an unknown preset or variant, a value out of range or without effect, or a learned head that is
            damaged or was trained with other models or settings.
        FileNotFoundError: the learned head does not exist.
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
        **settings: Unpack[SettingsDict],
    ) -> None:
        learned = settings.get("learned")
        self.head_folder = read_head(learned) if learned else None
        trained = self.head_folder.settings if self.head_folder else None
        self.settings: Settings = resolve_settings(preset, trained=trained, **settings)
        if self.head_folder:
            check_fits(self.head_folder, self.settings)
            self.settings = replace(self.settings, learned=self.head_folder.fingerprint)
        check_device(device)
        results, self._reports = ResultStore(store_folder(store)), Reports(progress)
        self.runtime = Runtime(batch_size, encoder_batch_size, device, results, self._reports)
        self.variant = VARIANTS[self.settings.variant](self.settings)

    def __repr__(self) -> str:
        usual = dict(resolve_settings("base", self.settings.variant).items())
        for name in ("variant", "language_model", "encoder"):  # always shown
            del usual[name]
        shown = (item for item in self.settings.items() if item not in usual.items())
        return f"MarsScorer({', '.join(f'{name}={_shown(value)}' for name, value in shown)})"

    def score(
        self,
        predictions: Texts,
        references: Texts | None = None,
        contexts: Contexts | None = None,
        *,
        samples: Texts | None = None,
        tasks: Tasks | None = None,
        explain: bool = False,
    ) -> MarsResult:
        """Score candidates.

        Args:
            predictions: a candidate per row, or a list of candidates that are scored one by one. Outer white space
                is removed. A blank candidate scores 0.0.
            references: a string or a list of strings per row. None: score by the contexts alone, with variant
                ``"plus"`` or ``"fast"``.
            contexts: one per row: a string, a dialogue as a list of strings or of chat messages ``{"role": ...,
                "content": ...}``, retrieved passages ``{"passages": [...]}``, optionally with a ``"question"``, or
                structured data as any other dict. None with ``use_context=False``.
            samples: a text or a list of texts per row that other systems wrote for the context, such as a good
                language model; None, "" or an empty list: none. A sample equal to the candidate is ignored.
            tasks: the kind of the contexts, per row or one for all: ``"text"``, ``"summary"``, ``"dialogue"`` or
                ``"data"``. None: by the type of the context, or the setting ``task``.
            explain: also return ``explanations``.

        Returns:
            Scores, mostly in [0, 1], with their details. Higher is better. A candidate with repetitions or
            contradictions, or that the language model finds unlikely, may score below 0.

        Raises:
            TypeError, ValueError: bad input, named with its row, or no rows. No model is loaded before.
            ModelUnavailableError: a model cannot be loaded.
        """
        candidates = check_candidate_lists(predictions)
        examples = self.check_examples(references, contexts, samples, tasks, predictions=candidates)
        numbers = [number for number, texts in enumerate(candidates) for _ in texts]
        rows = [examples[number].with_candidate(text) for number, texts in enumerate(candidates) for text in texts]
        return self.score_rows(rows, numbers, explain=explain)

    def score_table(
        self, table: object, *, columns: Mapping[str, str | None] | None = None, explain: bool = False
    ) -> MarsResult:
        """Score the rows of a table.

        If there is no column of contexts, a column with a usual name of passages is used
        (:mod:`mars_score.data.forms`), or a chat.

        Args:
            table: a pandas or polars frame, a pyarrow table, a data set of ``datasets``, a dict of columns, or
                one dict per row. Values are as for :meth:`score`.
            columns: names of columns that are not called ``prediction``, ``reference`` and ``context`` (or their
                plurals), such as ``{"reference": "answer"}``. ``"doc.answer"`` reads dicts in a column ``doc``.
                None ignores a column. Samples and tasks have no default: ``{"samples": "a", "task": "b"}``.
            explain: as for :meth:`score`.

        Returns:
            As for :meth:`score`.

        Raises:
            TypeError, ValueError, ModelUnavailableError: as for :meth:`score`.
            TypeError: an unknown key of ``columns``, or no table.
            ValueError: a column is missing in some or all rows, or some of its cells hold lists or objects written
                as strings, and others plain strings.
        """
        reader = _TableReader(self, columns)
        rows, numbers = reader.read(table)
        for sentence in reader.readings.warnings():
            warn(sentence)
        return self.score_rows(rows, numbers, explain=explain)

    def check_examples(
        self,
        references: Texts | None,
        contexts: Contexts | None,
        samples: Texts | None = None,
        tasks: Tasks | None = None,
        **options: Any,
    ) -> list[Example]:
        """Check the columns of examples, as :func:`mars_score.data.checking.check_examples` does."""
        self.check_inputs(has_references=references is not None, has_samples=samples is not None)
        options = {"use_context": self.settings.use_context, "task": self.settings.task, **options}
        return check_examples(references, contexts, samples, tasks, **options)

    def check_rows(
        self,
        predictions: Texts,
        references: Texts | None,
        contexts: Contexts | None,
        samples: Texts | None = None,
        tasks: Tasks | None = None,
        *,
        place: Place = BY_INDEX,
    ) -> list[Row]:
        """Check columns for :meth:`score_rows`, as :func:`mars_score.data.checking.check_rows` does."""
        self.check_inputs(has_references=references is not None, has_samples=samples is not None)
        columns = (predictions, references, contexts, samples, tasks)
        return check_rows(*columns, use_context=self.settings.use_context, task=self.settings.task, place=place)

    def check_inputs(self, *, has_references: bool, has_samples: bool = False) -> None:
        """Raise ValueError if rows without references or with samples cannot be scored."""
        settings = self.settings
        if has_samples and not self.variant.takes_samples:
            raise ValueError(
                f"samples have no effect with variant {settings.variant!r} and these settings; leave them out, or "
                'choose variant="plus" or "fast"'
            )
        if has_references:
            return
        if self.variant.needs_references:
            able = " or ".join(
                f"variant={name!r}" for name, variant in VARIANTS.items() if not variant.needs_references
            )
            raise ValueError(
                f"variant {settings.variant!r} needs references; give them, or score by the contexts alone with "
                f"{able}"
            )
        if not settings.use_context:
            raise ValueError(
                "without references a candidate is scored by its context: leave out use_context=False"
            )
        if self.head_folder:
            raise ValueError(
                f"{self.head_folder.path}: this head needs references; give them, or leave learned out"
            )

    def score_rows(
        self, rows: Sequence[Row], numbers: Sequence[int] | None = None, *, explain: bool = False
    ) -> MarsResult:
        """Score checked rows.

        Args:
            rows: the output of :meth:`check_rows`.
            numbers: index of the input row of each row. None: 0, 1, ...
            explain: also return explanations.

        Returns:
            As for :meth:`score`, with the same errors.
        """
        if not rows:
            raise ValueError("there is nothing to score: predictions is empty")
        result = self._result(rows, range(len(rows)) if numbers is None else numbers, Notices(), explain=explain)
        for sentence in result.notices:
            warn(sentence)
        return result

    def _result(
        self, rows: Sequence[Row], numbers: Sequence[int], counted: Notices, *, explain: bool = False
    ) -> MarsResult:
        """Score checked rows without warnings, and add their notices to ``counted``."""
        with self._reports.bars():
            scores = self._row_scores(rows)
            explanations = self._explain(rows, scores) if explain else ()
        signature = make_signature(
            self.settings,
            [len(row.references) for row in rows],
            has_samples=any(row.samples for row in rows),
            tasks={row.task for row in rows},
            device=self.runtime.device,
        )
        count_notices(counted, rows, numbers, scores)
        notices = tuple(counted.sentences().values())
        return MarsResult(tuple(rows), tuple(scores), signature, notices, tuple(numbers), explanations)

    def row_scores(self, rows: Sequence[Row], idf: Idf | None = None) -> list[RowScore]:
        """Score some of a call's checked rows, without their notices.

        Args:
            rows: the output of :meth:`check_rows`.
            idf: IDF over the references of the call. None: over those of these rows, or over ``idf_corpus``.
        """
        with self._reports.bars():
            return self._row_scores(rows, idf)

    def explain_rows(self, rows: Sequence[Row], idf: Idf | None = None) -> tuple[Explanation, ...]:
        """Score and explain some of a call's checked rows, with the arguments of :meth:`row_scores`."""
        return self._explain(rows, self.row_scores(rows, idf))

    def augment(self, references: Texts | None, contexts: Contexts | None = None) -> list[list[str]]:
        """Augment references with infills (section 2 of the paper), for use with any metric.

        Args:
            references: as for :meth:`score`.
            contexts: as for :meth:`score`.

        Returns:
            The references and infills of each row, each text once.

        Raises:
            TypeError, ValueError: bad input, named with its row, or the variant masks nothing.
            ModelUnavailableError: a model cannot be loaded.
        """
        self.variant.check_masks()
        examples = self.check_examples(references, contexts)
        augmented = self.augment_rows(examples)
        counted = Notices()
        for number, row in enumerate(augmented):
            counted.add(number, frozenset().union(*(reference.notices for reference in row)))
        for sentence in counted.sentences().values():
            warn(sentence)
        return [list(dict.fromkeys(text for reference in row for text in reference.texts)) for row in augmented]

    def augment_rows(self, examples: Sequence[Example], idf: Idf | None = None) -> list[list[AugmentedReference]]:
        """Augment the references of checked examples, with ``idf`` as for :meth:`row_scores`."""
        with self._reports.bars():
            return self.variant.augment(examples, self.calls, idf)

    def free(self) -> None:
        """Release the models. They are loaded again when needed."""
        for name in _LOADED:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the scorer without its models."""
        return {name: value for name, value in vars(self).items() if name not in _LOADED}

    @cached_property
    def calls(self) -> ModelCalls:
        """Return the models of the settings, which load when they are first needed."""
        return ModelCalls(self.settings.models, self.runtime)

    @cached_property
    def _head(self) -> TermsHead | None:
        return TermsHead.load(self.head_folder, self.settings, self.calls) if self.head_folder else None

    def _row_scores(self, rows: Sequence[Row], idf: Idf | None = None) -> list[RowScore]:
        prepared = [self.variant.prepare(row) for row in rows]
        rows = [row for row, _ in prepared]
        scores = [
            replace(score, notices=score.notices | notices)
            for score, (_, notices) in zip(self.variant.score(rows, self.calls, idf), prepared, strict=True)
        ]
        if self._head:
            scores = _correct(rows, scores, self._head)
        for row, score in zip(rows, scores, strict=True):
            if not math.isfinite(score.score):
                fault = f"the score of {row.candidate!r:.60} is {score.score}, no finite number"
                raise ValueError(f"{fault}; a model or head of these settings gives such values: use another")
        return scores

    def _explain(self, rows: Sequence[Row], scores: Sequence[RowScore]) -> tuple[Explanation, ...]:
        prepared = [self.variant.prepare(row)[0] for row in rows]
        return explain(prepared, scores, self.calls, match_tokens=self.variant.matches_tokens)


def score(
    predictions: Texts,
    references: Texts | None = None,
    contexts: Contexts | None = None,
    *,
    samples: Texts | None = None,
    tasks: Tasks | None = None,
    explain: bool = False,
    **settings: Unpack[ScorerDict],
) -> MarsResult:
    """Call :meth:`MarsScorer.score` of a new scorer. Models given by name stay loaded between calls."""
    scorer = MarsScorer(**settings)
    return scorer.score(predictions, references, contexts, samples=samples, tasks=tasks, explain=explain)


def score_table(
    table: object,
    *,
    columns: Mapping[str, str | None] | None = None,
    explain: bool = False,
    **settings: Unpack[ScorerDict],
) -> MarsResult:
    """Call :meth:`MarsScorer.score_table` of a new scorer. Models given by name stay loaded between calls."""
    return MarsScorer(**settings).score_table(table, columns=columns, explain=explain)


def score_iter(
    rows: Iterable[Mapping[str, object]],
    *,
    columns: Mapping[str, str | None] | None = None,
    chunk_size: int = 64,
    **settings: Unpack[ScorerDict],
) -> Iterator[dict[str, Any]]:
    """Score a stream of any length in chunks of rows.

    Args:
        rows: dicts with ``"prediction"``, ``"reference"`` and ``"context"``.
        columns: other names of these columns, as for :meth:`MarsScorer.score_table`.
        chunk_size: rows that are read and scored together.
        settings: arguments of :class:`MarsScorer`. `paper` needs ``idf_corpus``, as IDF cannot be counted over the
            references of a stream.

    Yields:
        A dict per candidate as in :meth:`MarsResult.to_records`. ``"row"`` is the index in the stream. At the end
        there is one warning for each kind of special rows.

    Raises:
        ValueError: ``idf_corpus`` is missing, or ``chunk_size`` is below 1. The call itself raises it.
        TypeError, ValueError: bad input, named with its row in the stream.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
    scorer = MarsScorer(**settings)
    if scorer.variant.idf_counter() is not None:
        raise ValueError(
            f"variant {scorer.settings.variant!r} counts IDF over all references, which a stream does not have: "
            "pass some as idf_corpus=[...], or set max_mask_ratio=0"
        )
    reader = _TableReader(scorer, columns)

    def records() -> Iterator[dict[str, Any]]:
        done, stream, counted = 0, iter(rows), Notices()
        try:
            while chunk := list(islice(stream, chunk_size)):
                yield from scorer._result(*reader.read(chunk, done), counted).to_records()
                done += len(chunk)
        finally:
            for sentence in (*reader.readings.warnings(), *counted.sentences().values()):
                warn(sentence)

    return records()


class _TableReader:
    """Checks the rows of a table, or the chunks of a stream.

    Attributes:
        readings: how contexts and candidates that are not plain texts were read.
    """

    def __init__(self, scorer: MarsScorer, columns: Mapping[str, str | None] | None) -> None:
        self.readings = Readings()
        self._scorer, self._kinds = scorer, CellKinds()
        names = dict(columns or {})
        if not scorer.settings.use_context:
            names["context"] = None
        elif names.get("context", "") is None:
            raise ValueError("contexts are missing: name their column, or set use_context=False")
        self._columns = Columns.named(names)

    def read(self, table: object, first: int = 0) -> tuple[list[Row], Sequence[int]]:
        """Return a row for each candidate and the index of its input row, counted from ``first``."""
        source, task = read_table(table, first), self._scorer.settings.task
        try:
            found = self._columns.found_in(source)
            self._scorer.check_inputs(has_references=bool(found.reference), has_samples=bool(found.samples))
            file, rows = found.checked(found.read(source), self._kinds, task=task, readings=self.readings)
            return rows, file.numbers
        except ColumnError as error:
            named = ", ".join(f"{holds!r}: ..." for holds in error.holds)
            alone = " (None: score without references)" * ("reference" in error.holds)
            raise ColumnError(f"{error}: columns={{{named}}}{alone}", error.holds) from None


def _correct(rows: Sequence[Row], scores: list[RowScore], head: TermsHead) -> list[RowScore]:
    """Replace the scores of candidates that are not blank by those of a learned head."""
    written = [index for index, row in enumerate(rows) if row.candidate]
    features = head.features([rows[index] for index in written], [scores[index] for index in written])
    for index, terms in zip(written, head.score(features), strict=True):
        scores[index] = replace(scores[index], score=weighted_sum(terms), terms=terms)
    return scores


def _shown(value: object) -> str:
    """Shorten the value of a setting, for a model object to the name of its class."""
    if isinstance(value, (str, os.PathLike)):
        return repr(os.fspath(value))
    model = value[0] if isinstance(value, tuple) and len(value) == 2 else value
    return f"<{type(model).__name__}>" if hasattr(model, "state_dict") else reprlib.repr(value)
