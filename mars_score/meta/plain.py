"""A meta-evaluation as plain data, for JSON: what is undefined is null."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mars_score.meta.evaluation import MetaEvaluation, SetResult


def to_dict(found: MetaEvaluation) -> dict[str, Any]:
    """All figures; not the scores of single items."""
    return {
        "seed": found.options.seed,
        "resamples": found.options.resamples,
        "titles": dict(found.titles),
        "sets": {name: _set(one) for name, one in found.sets.items()},
    }


def score_rows(one: SetResult) -> Iterator[dict[str, Any]]:
    """Each item of a set with its scores by metric, and by attack and metric where it was attacked."""
    scored = one.scored
    places = {
        name: {index: place for place, index in enumerate(attacked.indices)}
        for name, attacked in scored.attacks.items()
    }
    for index, item in enumerate(scored.data.items):
        row: dict[str, Any] = {"id": item.id, "group": item.group, "system": item.system, "rating": item.rating}
        row["scores"] = {name: metric.scores[index] for name, metric in scored.metrics.items()}
        for attack, of_attack in places.items():
            if index in of_attack:
                place = of_attack[index]
                row[attack] = {name: metric.attacked[attack][place] for name, metric in scored.metrics.items()}
        yield _plain(row)


def _set(one: SetResult) -> dict[str, Any]:
    data = one.scored.data
    return {
        "level": one.level,
        "items": len(data.items),
        "groups": len(set(data.groups)),
        "systems": len(set(data.systems)),
        "task": data.task,
        "notices": list(data.notices),
        "attacks": {
            name: {"items": len(attacked.indices), "skipped": attacked.skipped}
            for name, attacked in one.scored.attacks.items()
        },
        "metrics": {
            name: {
                "title": metric.title,
                "family": metric.family,
                "note": metric.note,
                "signature": metric.signature,
                "failure": metric.failure,
                **_plain(dataclasses.asdict(one.agreements[name])),
            }
            for name, metric in one.scored.metrics.items()
        },
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else float(value)
    return value
