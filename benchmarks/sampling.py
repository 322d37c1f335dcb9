"""Real rows for a benchmark, and the jobs of their templates."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mars_score.data.files import read_rows
from mars_score.infilling.batched import CausalInfiller
from mars_score.infilling.jobs import Job
from mars_score.metrics.idf import Idf
from mars_score.metrics.template import Template, make_templates
from mars_score.models.tagger import WordAnalyser, prepare_reference
from mars_score.settings.stages import MaskingSettings


@dataclass(frozen=True)
class Sample:
    """A row of a meta-evaluation file, with the first of its references."""

    context: str
    reference: str
    candidate: str
    group: str


def sample_rows(args: argparse.Namespace, count: int, generator: np.random.Generator) -> list[Sample]:
    """Draw rows from ``args.files`` in turn, at random within each; every group and reference at most once.

    Raises:
        ValueError: the files hold fewer fitting rows.
    """
    pools = [_fitting(path, args.max_context_words, args.min_reference_words) for path in args.files]
    orders = [[pool[index] for index in generator.permutation(len(pool))] for pool in pools]
    chosen: list[Sample] = []
    groups, references = set(), set()
    while len(chosen) < count:
        if not any(orders):
            raise ValueError(f"the files hold {len(chosen)} fitting rows of different groups, {count} are wanted")
        for order in orders:
            while order and len(chosen) < count:
                row = order.pop()
                if row.group in groups or row.reference in references:
                    continue
                chosen.append(row)
                groups.add(row.group)
                references.add(row.reference)
                break
    return chosen


def _fitting(path: str, max_context_words: int, min_reference_words: int) -> list[Sample]:
    rows = [
        Sample(row["context"].strip(), row["references"][0].strip(), row["candidate"], f"{path}:{row['group']}")
        for row in read_rows(path).rows
        if isinstance(row["context"], str) and row["references"]
    ]
    return [
        row
        for row in rows
        if 0 < len(row.context.split()) <= max_context_words and len(row.reference.split()) >= min_reference_words
    ]


def make_jobs(
    infiller: CausalInfiller, pairs: Sequence[tuple[str, str]], masking: MaskingSettings
) -> dict[Job, tuple[str, Template]]:
    """The different jobs with a blank of (context, reference) pairs, with their contexts and templates."""
    analyser = WordAnalyser()
    strip = masking.strip_urls_hashtags
    references = [prepare_reference(reference, strip_urls_hashtags=strip) for _, reference in pairs]
    analyses = analyser.analyse(references)
    words = analyser.words(context for context, _ in pairs)
    idf = Idf.count([analysis.lower_words for analysis in analyses.values()])
    jobs = {}
    for (context, _), reference in zip(pairs, references, strict=True):
        for _, template in make_templates(analyses[reference], words[context], idf, masking):
            if template.blanks:
                job, _ = infiller.make_job(context, template)
                jobs[job] = context, template
    return jobs
