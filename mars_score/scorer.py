"""MarsScorer: the facade that joins masking, infilling and similarity."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from mars_score.augmentation import Augmented, Augmenter, Pair, Progress, cuts, prepare_pairs
from mars_score.data.validation import check_candidates, check_contexts, check_lengths, check_references
from mars_score.diagnostics import Notices
from mars_score.errors import MarsWarning
from mars_score.fields import is_number
from mars_score.models.fingerprints import unchanging
from mars_score.models.loading import check_device
from mars_score.result import AugmentedReference, MarsResult
from mars_score.settings import Settings, resolve_settings
from mars_score.signature import make_signature
from mars_score.similarity.batch import Scorable
from mars_score.similarity.features import Reader
from mars_score.store.location import Store, store_folder
from mars_score.store.results import ResultStore


class MarsScorer:
    """Scores candidates by their similarity with augmented references.

    Models are loaded when they are first needed and stay loaded until :meth:`free`.

    Args:
        preset: which models: ``"mini"``, ``"base"`` (default) or ``"paper"``; see the README.
        batch_size: jobs (a reference at one mask ratio) that the language model infills together, at most;
            None: as many as pay and as memory holds.
        device: ``"cpu"``, ``"cuda"``, ...; None: CUDA where there is one.
        store: folder for what is kept between processes; None: the user's cache folder (or ``MARS_STORE``),
            False: keep nothing.
        progress: called as ``progress(stage, done, total)``; None: no reports.
        settings: any setting of :mod:`mars_score.settings`, by name.

    Raises:
        ValueError: an unknown preset or variant, or a setting out of range.
        TypeError: an unknown setting.
    """

    def __init__(
        self,
        preset: str | None = None,
        *,
        batch_size: int | None = None,
        device: str | None = None,
        store: Store = None,
        progress: Progress | None = None,
        **settings: Any,
    ) -> None:
        if batch_size is not None and not is_number(batch_size, int, 1):
            raise ValueError(f"batch_size must be an integer of at least 1, got {batch_size!r}")
        self.settings: Settings = resolve_settings(preset, **settings)
        self.batch_size = batch_size and int(batch_size)  # an integer of NumPy's is none for JSON
        check_device(device)
        self.device = device
        self.store = store_folder(store)
        self._kept = ResultStore(self.store)
        self.progress = progress

    @unchanging()
    def score(self, predictions: Any, references: Any, contexts: Any = None) -> MarsResult:
        """Score candidates.

        Args:
            predictions: one candidate a row, whose outer whitespace does not count; a blank one scores 0.0.
            references: a string or a list of strings a row.
            contexts: a string a row (a list of strings is joined); may be left out with ``use_context=False``.

        Returns:
            Scores in [-1, 1] (in practice mostly in [0, 1]), higher is better, with all their details. With
            ``likelihood_weight`` above 0 a text that the language model finds unlikely may score lower.

        Raises:
            TypeError, ValueError: bad input, named with its row, before any model is loaded.
            ModelUnavailableError: a model cannot be loaded.
        """
        candidates = [candidate.strip() for candidate in check_candidates(predictions)]
        rows, texts = self._check(references, contexts, predictions=candidates)
        pairs = prepare_pairs(rows, texts, self.settings.masking)
        augmented = self._augment(pairs, [bool(candidate) for candidate in candidates])
        contexts = [context.strip() for context in texts]
        scorable = Scorable(candidates, contexts, augmented, self.settings.similarity)
        evidence = {
            kind: self._reader.read(kind, items, partial(self._report, kind))
            for kind, items in scorable.needs.items()
        }
        signature = make_signature(self.settings, self._augmenter.analyser.pipeline, map(len, rows))
        return MarsResult(tuple(scorable.scores(evidence)), signature, _warn(scorable.flags(evidence)))

    def augment(self, references: Any, contexts: Any = None) -> list[list[str]]:
        """Per row its references and their augmentations, without repetitions: references for any metric.

        Args and errors as for :meth:`score`.
        """
        return [
            list(dict.fromkeys(text for reference in row for text in reference.texts))
            for row in self.augment_references(references, contexts)
        ]

    @unchanging()
    def augment_references(self, references: Any, contexts: Any = None) -> list[tuple[AugmentedReference, ...]]:
        """Per row one AugmentedReference per human reference; args and errors as for :meth:`score`."""
        rows, texts = self._check(references, contexts)
        augmented = self._augment(prepare_pairs(rows, texts, self.settings.masking), [True] * len(rows))
        _warn(cuts(augmented))
        return [tuple(one.reference for one in row) for row in augmented]

    def free(self) -> None:
        """Let go of the models; they are loaded again when needed."""
        for name in ("_augmenter", "_reader"):
            self.__dict__.pop(name, None)

    def _check(
        self, references: Any, contexts: Any, **columns: Sequence[str]
    ) -> tuple[list[tuple[str, ...]], list[str]]:
        """References and contexts of each row."""
        rows = check_references(references)
        check_lengths(**columns, references=rows)
        texts = check_contexts(contexts, len(rows), use_context=self.settings.use_context)
        check_lengths(references=rows, contexts=texts)
        return rows, texts

    def _augment(self, pairs: Sequence[Sequence[Pair]], wanted: Sequence[bool]) -> list[list[Augmented]]:
        """Augmented references of each wanted row; the references of the others count for the IDF only."""
        needed = [row if want else [] for row, want in zip(pairs, wanted, strict=True)]
        others = [reference for row in pairs for _, reference in row]
        augmented = self._augmenter.augment([pair for row in needed for pair in row], others)
        return [[augmented[pair] for pair in row] for row in needed]

    @cached_property
    def _augmenter(self) -> Augmenter:
        return Augmenter(self.settings, self.batch_size, self.device, self.store, self._kept, self._report)

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self.settings, self.batch_size, self.device, self.store, self._kept)

    def _report(self, stage: str, done: int, total: int) -> None:
        if self.progress:
            self.progress(stage, done, total)


def _warn(flags: Mapping[str, Sequence[bool]]) -> tuple[str, ...]:
    """One sentence and one warning per kind of notice."""
    notices = Notices()
    notices.add(flags)
    for sentence in notices.sentences():
        warnings.warn(sentence, MarsWarning, stacklevel=3)
    return notices.sentences()
