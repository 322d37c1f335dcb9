"""A scorer without models, and a metric for evaluate that stands beside MARS, as BLEU would."""

import warnings
import zlib
from typing import ClassVar

import numpy as np

from mars_score.augmentation import Augmented
from mars_score.data.tables import columns_of, is_tabular
from mars_score.data.validation import check_candidate_lists, check_rows
from mars_score.errors import MarsWarning
from mars_score.masking.analysis import Analysis, Word
from mars_score.masking.template import Template
from mars_score.result import (
    Augmentation,
    AugmentedReference,
    MarsResult,
    ReferenceScore,
    RowScore,
    ScoredTexts,
    Term,
)
from mars_score.runs.worker import Worker
from mars_score.runtime import Runtime
from mars_score.sampling.samples import Samples
from mars_score.settings import resolve_settings
from mars_score.signature import Signature
from mars_score.similarity.embeddings import Embedding
from mars_score.similarity.features import CONTRADICTION, LIKELIHOOD, MATCH
from mars_score.similarity.likelihood import Likelihood


class FakeScorer:
    """Scores the share of a candidate's words that a reference has; "loads" when it first scores."""

    made: ClassVar[list] = []  # every scorer since the fixture began
    seen: ClassVar[list] = []  # the checked columns of each call of score
    loads = 0
    fault = None  # raised in the place of a load
    chatter = None  # printed while loading, as libraries do

    def __init__(
        self,
        preset=None,
        *,
        batch_size=None,
        encoder_batch_size=None,
        device=None,
        store=None,
        progress=None,
        **settings,
    ) -> None:
        self.settings = resolve_settings(preset, **settings)
        self.batch_size, self.device, self.store, self.progress = batch_size, device, store, progress
        self.runtime = Runtime(batch_size, encoder_batch_size, device)
        self.loaded = False
        FakeScorer.made.append(self)

    def _load(self):
        if FakeScorer.fault is not None:
            raise FakeScorer.fault
        if not self.loaded:
            FakeScorer.loads += 1
            self.loaded = True
            if FakeScorer.chatter:
                print(FakeScorer.chatter)

    def score(self, predictions, references=None, contexts=None, *, columns=None):
        if references is None and is_tabular(predictions):
            predictions, references, contexts = columns_of(predictions, columns)
        given = check_candidate_lists(predictions)
        rows, texts = check_rows(references, contexts, use_context=self.settings.use_context, predictions=given)
        numbers = [number for number, some in enumerate(given) for _ in some]
        candidates = [candidate for some in given for candidate in some]
        references, contexts = ([column[number] for number in numbers] for column in (rows, texts))
        FakeScorer.seen.append([candidates, list(map(list, references)), contexts])
        self._load()
        rows = tuple(self._row(*row) for row in zip(candidates, references, contexts, strict=True))
        if callable(self.progress):
            self.progress("scoring", len(rows), len(rows))
        blank = sum(not candidate.strip() for candidate in candidates)
        notices = (f"{blank} blank candidates score 0.0",) if blank else ()
        for notice in notices:
            warnings.warn(notice, MarsWarning, stacklevel=2)
        brief = {"version": "0", "max_mask_ratio": self.settings.masking.max_mask_ratio}
        texts = tuple(map(ScoredTexts, numbers, candidates, references, contexts))
        return MarsResult(rows, Signature({**brief, "texts": list(contexts)}, tuple(brief)), notices, texts)

    def _row(self, candidate, references, context):
        if not candidate.strip():
            return RowScore(0.0, ())
        scores = [self._reference(candidate, one, context) for one in references]
        best = max(one.score for one in scores)
        return RowScore(best, tuple(scores), (Term("references", best, 1.0),))

    def _reference(self, candidate, reference, context):
        words, of_reference = candidate.split(), set(reference.split())
        share = sum(word in of_reference for word in words) / len(words)
        return ReferenceScore(self._augmented(reference, context), (share, share), share)

    @staticmethod
    def _augmented(reference, context):
        text = f"{reference} <{context}>"
        return AugmentedReference(reference, (Augmentation(0.2, Template(reference, ()), text),))

    def augment(self, references, contexts=None):
        rows = self.augment_references(references, contexts)
        return [[text for one in row for text in one.texts] for row in rows]

    def augment_references(self, references, contexts=None):
        references, contexts = check_rows(references, contexts, use_context=self.settings.use_context)
        self._load()
        return [
            tuple(self._augmented(one, context) for one in row)
            for row, context in zip(references, contexts, strict=True)
        ]

    def free(self):
        self.loaded = False


def install(monkeypatch):
    """Put FakeScorer in the place of MarsScorer, with nothing made or loaded yet."""
    for module in ("functions", "scorer"):  # in this order: the first import of functions takes the real one
        monkeypatch.setattr(f"mars_score.{module}.MarsScorer", FakeScorer)
    monkeypatch.setattr(FakeScorer, "made", [])
    monkeypatch.setattr(FakeScorer, "seen", [])
    monkeypatch.setattr(FakeScorer, "loads", 0)
    monkeypatch.setattr(FakeScorer, "fault", None)
    monkeypatch.setattr(FakeScorer, "chatter", None)
    return FakeScorer


class FakeWorker(Worker):
    """Works on chunks without models: a text's vector counts its words."""

    made: ClassVar[list] = []  # every worker since the fixture began
    fault = None  # raised in the place of work
    chatter = None  # printed when it begins, as libraries do

    def __init__(self, plan, report=None):
        super().__init__(plan, report)
        self.report = report
        self._augmenter = self._sampler = self._reader = self
        FakeWorker.made.append(self)

    def work(self, chunk):
        if FakeWorker.fault is not None:
            raise FakeWorker.fault
        if FakeWorker.chatter:
            print(FakeWorker.chatter)
            FakeWorker.chatter = None
        return super().work(chunk)

    def augment(self, pairs, idf):
        return {
            (context, reference): Augmented(FakeScorer._augmented(reference, context), False, False)
            for context, reference in pairs
        }

    def draw(self, requests, progress):
        return {one: Samples(tuple(one.context.split()[:2])) if one.wanted else Samples(()) for one in requests}

    def read(self, kind, items):
        if kind == LIKELIHOOD:
            return {item: Likelihood(-float(len(item[1])), -8.0, False) for item in items}
        if kind == CONTRADICTION:
            return dict.fromkeys(items, 0.0)
        return {text: self._embedding(text, tokens=kind == MATCH) for text in items}

    @staticmethod
    def _embedding(text, tokens):
        vectors = np.zeros((len(text.split()), 512))
        for vector, word in zip(vectors, text.split(), strict=True):
            vector[zlib.crc32(word.encode()) % 512] = 1
        return Embedding.of(vectors.sum(0), vectors if tokens else None, shortened=False)


def install_worker(monkeypatch):
    """Put FakeWorker in the place of Worker, and plain splitting in the place of spaCy."""
    monkeypatch.setattr("mars_score.runs.worker.Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "made", [])
    monkeypatch.setattr(FakeWorker, "fault", None)
    monkeypatch.setattr(FakeWorker, "chatter", None)
    monkeypatch.setattr(
        "mars_score.masking.analysis.WordAnalyser.analyse",
        lambda self, texts: [
            Analysis(text, tuple(Word(one, 0, 0, "X") for one in text.split())) for text in texts
        ],
    )
    return FakeWorker


TOY_METRIC = '''
import datasets
import evaluate
import sacrebleu


class Toy(evaluate.Metric):
    """BLEU by sacrebleu, the plainest way."""

    def _info(self):
        text = datasets.Value("string")
        features = datasets.Features({"predictions": text, "references": datasets.Sequence(text)})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        return {"toy": sacrebleu.corpus_bleu(predictions, list(map(list, zip(*references)))).score}
'''
