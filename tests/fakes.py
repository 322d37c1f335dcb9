"""A worker of runs without models, where a real one would infill each reference anew for each test."""

import zlib
from typing import ClassVar

import numpy as np
from mars_score.runs.worker import Worker

from mars_score.augment.augmented import Augmentation, Augmented, AugmentedReference
from mars_score.augment.masking.analysis import Analysis, Word
from mars_score.augment.masking.template import Template
from mars_score.augment.sampling.samples import Samples
from mars_score.scoring.embeddings import Embedding
from mars_score.scoring.evidence import CONTRADICTION, LIKELIHOOD, MATCH
from mars_score.scoring.likelihood import Likelihood


def _augmented(reference, context):
    text = f"{reference} <{context}>"
    return AugmentedReference(reference, (Augmentation(0.2, Template(reference, ()), text),))


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
            (context, reference): Augmented(_augmented(reference, context), False, False)
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
        "mars_score.augment.masking.analysis.WordAnalyser.analyse",
        lambda self, texts: [
            Analysis(text, tuple(Word(one, 0, 0, "X") for one in text.split())) for text in texts
        ],
    )
    return FakeWorker
