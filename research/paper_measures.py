"""Measure the figures of docs/paper.md and research/other_papers.md with the models of preset ``mini``."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mars_score import MarsScorer
from mars_score.data.reading import read_rows
from mars_score.meta.agreement import ATTACKS, attack
from mars_score.meta.metrics import MarsVariant, Metric, Models, make_metric
from mars_score.meta.sets import RatedSet, read_rated_set
from mars_score.rows import Row
from mars_score.stats.correlation import MainLevel, at_level, bootstrap_interval, correlation, resampled_pearson
from mars_score.stats.resampling import Floats
from research.results import Figures

STORIES = Path(__file__).parent.parent / "examples" / "stories.jsonl"
# The texts of the paper's Table 1.
TABLE1 = {
    "context": "Wendy was driving down the road. She heard her car making a noise. She pulled over to examine the "
    "problem. There was nothing but oil all on the road from her car.",
    "reference": "She called for help and waited to get her car fixed.",
    "candidate": "Her fears were confirmed when her engine was smoking.",
    "reorder": "her confirmed engine fears her when was were smoking.",
    "retrieve": "She heard her car making a noise.",
}
ASPECTS = ("coherence", "fluency", "informativeness", "relevance")
RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8)
DEFAULT = RATIOS.index(0.6)
FEWEST = 30  # attacked rows that are needed
PEERS = {
    "BLEU-1": "bleu1",
    "METEOR": "meteor",
    "ROUGE-L": "rouge_l",
    "Sent. Mover Sim.": "sentence_mover",
    "MoverScore": "moverscore",
    "BERTScore": "bertscore",
    "Perplexity": "perplexity",
    "context cosine": "context_cosine",
    "length": "length",
}
# Settings by row of the paper's tables.
ABLATIONS = {
    "MARS": "",
    "MARS w/o self-planning": "planner=none",
    "MARS w/o context": "use_context=false",
    "MARS w/o both": "planner=none,use_context=false",
}


@dataclass(frozen=True)
class Sample:
    """How a set is measured: the maximum number of contexts, whether with the planner, and the level of r."""

    contexts: int
    planned: bool = True
    level: MainLevel = "items"

    @property
    def variants(self) -> dict[str, str]:
        """Return the :data:`ABLATIONS` that are measured. The first is also attacked."""
        return {
            title: changes for title, changes in ABLATIONS.items() if self.planned or "planner=none" in changes
        }


SAMPLES = {
    "newsroom": Sample(28),
    "evouna_nq": Sample(80),
    "evouna_tq": Sample(80),
    "openmeva_roc": Sample(20),
    "qa_feedback": Sample(20, planned=False, level="within_groups"),
}


def measure(folder: Path, names: Sequence[str], target: Path) -> None:
    """Measure sets of a folder and the example, and add them to the target."""
    kept = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {"sets": {}}
    for name in names:
        path = folder / f"{name}.jsonl"
        rated = read_rated_set(path)
        rated = rated.where([bool(row.candidate) for row in rated.rows])
        measuring = Measuring(rated.sample(SAMPLES[name].contexts), SAMPLES[name])
        kept["sets"][name] = measuring.figures()
        if name == "newsroom":
            ratings = {row["id"]: row["ratings"] for row in read_rows(path).rows}
            kept["sets"][name]["aspects"] = measuring.aspects(ratings)
        target.write_text(json.dumps(kept) + "\n", encoding="utf-8")
    measure_example(target)


def measure_example(target: Path) -> None:
    """Measure the examples of the page, and add them to the target."""
    kept = json.loads(target.read_text(encoding="utf-8"))
    kept["example"], kept["table1"] = example(), table1()
    print(json.dumps(kept["example"], indent=1))
    target.write_text(json.dumps(kept) + "\n", encoding="utf-8")


def peer_scores(peers: Mapping[str, Metric], rows: Sequence[Row], corpus: Sequence[str]) -> dict[str, Floats]:
    """Compute one score per row by each metric. The perplexity is that of the candidate without context."""
    alone = [replace(row, context="") for row in rows]
    return {
        title: np.array(peer.score(alone if title == "Perplexity" else rows, corpus))
        for title, peer in peers.items()
    }


class Measuring:
    """The scores of a sample of rated candidates, and their figures."""

    def __init__(self, rated: RatedSet, sample: Sample) -> None:
        self.models, self.rated, self.sample = Models(preset="mini", variant="paper"), rated, sample
        self.peers = {title: make_metric(name, self.models) for title, name in PEERS.items()}
        self.systems, self.ratings = np.array(rated.systems), np.array(rated.ratings)
        self.groups, self.first = np.array(rated.groups), next(iter(sample.variants))
        self.scores = peer_scores(self.peers, rated.rows, rated.corpus)
        self.ratios = {}
        for title, changes in sample.variants.items():
            scores, deviations = self.mars(changes, rated.rows)
            self.scores[title], self.scores["reference cosine"] = scores[:, DEFAULT], scores[:, 0]
            of_ratio = [self.agreement(column)[0] for column in scores.T]
            self.ratios[title] = {"r": of_ratio, "sd": [round(deviation, 3) for deviation in deviations]}

    def mars(self, changes: str, rows: Sequence[Row]) -> tuple[Floats, list[float]]:
        """Compute scores, (rows, 5), and mean standard deviations of the cosines, (5,), by largest mask ratio."""
        settings = ",".join(filter(None, ["max_mask_ratio=0.8", changes]))
        result = MarsVariant(self.models, changes, settings).result(rows, self.rated.corpus)
        cosines = [np.array([reference.similarities for reference in row.references]) for row in result.row_scores]
        weights = 0.8 ** np.arange(len(RATIOS))
        scores = np.array([((row * weights).cumsum(1) / weights.cumsum()).max(0) for row in cosines])
        if not np.allclose(scores[:, -1], result.scores, rtol=0, atol=1e-6):
            raise ValueError("the weighted means of this script are not the scores of the scorer")
        counts = range(1, len(RATIOS) + 1)
        return scores, [float(np.mean([row[:, :count].std(1).mean() for row in cosines])) for count in counts]

    def agreement(self, scores: Floats, chosen: slice | NDArray[np.generic] = slice(None)) -> list[float]:
        """Compute Pearson's r over chosen items, and its 95 % interval from resamples of contexts."""
        ratings, groups, level = self.ratings[chosen], list(self.groups[chosen]), self.sample.level
        value = correlation(scores[chosen], ratings, level=level, groups=groups).value
        interval = bootstrap_interval(at_level(scores[chosen], ratings, level, groups=groups))
        return [round(float(number), 3) for number in (value, interval.low, interval.high)]

    def above(self, title: str) -> list[float]:
        """Compute Pearson's r of MARS minus that of another metric over all rows, with its 95 % interval."""
        mars, other = (
            at_level(self.scores[name], self.ratings, self.sample.level, groups=list(self.groups))
            for name in (self.first, title)
        )
        differences = resampled_pearson(mars) - resampled_pearson(other)  # in the same resamples
        value = self.agreement(self.scores[self.first])[0] - self.agreement(self.scores[title])[0]
        ends = np.nanquantile(differences, [0.025, 0.975])
        return [round(float(number), 3) for number in (value, *ends)]

    def figures(self) -> Figures:
        """Compute agreement by metric, by system and by largest mask ratio, and attacks."""
        by_system = dict.fromkeys(self.systems.tolist() if self.sample.level == "items" else [])
        return {
            "rows": len(self.rated.rows),
            "contexts": len(set(self.rated.groups)),
            "ratios": self.ratios,
            "r": {title: self.agreement(scores) for title, scores in self.scores.items()},
            "above": {title: self.above(title) for title in self.scores if title != "Perplexity"},
            "systems": {
                name: {title: self.agreement(x, self.systems == name) for title, x in self.scores.items()}
                for name in by_system
            },
            "attacks": {name: figures for name in ATTACKS if (figures := self.attacked(name))},
        }

    def attacked(self, name: str) -> Figures:
        """Compute by metric how much an attack lowers r, and the share of attacked rows below their originals."""
        changed = attack(name, self.rated.rows)
        chosen = np.array(changed.indices, dtype=int)
        if len(chosen) < FEWEST:
            return {}
        under = peer_scores(self.peers, changed.rows, self.rated.corpus)
        under[self.first] = self.mars(self.sample.variants[self.first], changed.rows)[0][:, DEFAULT]
        figures: dict[str, int | list[float]] = {"rows": len(chosen)}
        for metric, scores in under.items():
            whole = self.scores[metric].copy()
            whole[chosen] = scores
            drop = self.agreement(self.scores[metric], chosen)[0] - self.agreement(whole, chosen)[0]
            below = np.mean(scores < self.scores[metric][chosen])
            figures[metric] = [round(drop, 3), round(float(below), 3)]
        return figures

    def aspects(self, ratings: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
        """Compute Spearman's rho of each metric with the ratings by id of each of :data:`ASPECTS`."""
        columns = [[ratings[label][aspect] for label in self.rated.ids] for aspect in ASPECTS]
        return {
            title: [round(float(stats.spearmanr(scores, column).statistic), 3) for column in columns]
            for title, scores in self.scores.items()
        }


def example() -> Figures:
    """Score the candidates of the first story of examples/ by several metrics, and time the augmentation."""
    stories = read_stories()
    corpus = [text for story in stories for text in story["references"]]
    context, reference = stories[0]["context"], stories[0]["references"][0]
    candidates = {candidate["text"]: candidate["kind"] for candidate in stories[0]["candidates"]}
    rows = [Row(text, (reference,), context) for text in candidates]
    scored = MarsScorer("mini", variant="paper", idf_corpus=corpus).row_scores(rows)
    models, shown = Models(preset="mini", variant="paper"), ("Perplexity", "BLEU-1", "ROUGE-L", "BERTScore")
    peers = peer_scores({title: make_metric(PEERS[title], models) for title in shown}, rows, corpus)
    peers["Perplexity"] = -peers["Perplexity"]
    compared = {
        f"{kind}: {text}": [
            *(float(peers[title][index]) for title in shown),
            *scored[index].references[0].similarities,
            scored[index].score,
        ]
        for index, (text, kind) in enumerate(candidates.items())
    }
    cosines = [f"cosine, {infill.mask_ratio:.0%}" for infill in scored[0].references[0].augmented.infills]
    return {
        "candidates": {"columns": [*shown, "cosine, reference", *cosines, "MARS"], "rows": compared},
        "seconds": seconds(stories, corpus),
    }


def table1() -> Figures:
    """Score the texts of the paper's Table 1 by each variant, with IDF counted over them and examples/."""
    corpus = [text for story in read_stories() for text in story["references"]]
    context, reference, *candidates = TABLE1.values()
    rows = [Row(text, (reference,), context) for text in candidates]
    scored = [
        MarsScorer("mini", variant="paper", idf_corpus=[*corpus, reference]).row_scores(rows),
        *(MarsScorer("mini", variant=variant).row_scores(rows) for variant in ("plus", "fast")),
    ]
    names, values = list(TABLE1)[2:], [[round(row.score, 3) for row in same] for same in zip(*scored, strict=True)]
    return {"columns": ["`paper`", "`plus`", "`fast`"], "rows": dict(zip(names, values, strict=True))}


def read_stories() -> list[Figures]:
    """Read the stories of examples/."""
    return [json.loads(line) for line in STORIES.read_text(encoding="utf-8").splitlines()]


def seconds(stories: Sequence[Figures], corpus: Sequence[str]) -> Figures:
    """Measure the mean time of masking and infilling a reference at four ratios, without a store."""
    scorer = MarsScorer("mini", variant="paper", max_mask_ratio=0.8, idf_corpus=corpus, store=False)
    first, *others = [(text, story["context"]) for story in stories for text in story["references"]]
    scorer.augment(*([one] for one in first))  # loads the models
    start = time.perf_counter()
    scorer.augment(*map(list, zip(*others, strict=True)))
    passed = round((time.perf_counter() - start) / len(others), 1)
    return {"columns": ["seconds a reference", "references"], "rows": {"ours": [passed, len(others)]}}
