"""The signature: all that a score depends on besides the texts, as sacreBLEU does it."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from mars_score.models.fingerprints import fingerprint
from mars_score.settings import Settings, resolve_settings
from mars_score.settings.language import pipeline_name
from mars_score.version import __version__

_MODELS = ("language_model", "encoder", "entailment_model")
_LIBRARIES = ("rapidfuzz", "torch", "transformers", "sentence-transformers")
_OF_MASKING = ("idf_corpus", "spacy_pipeline", "rapidfuzz")  # of no effect where no word is masked
_installed = cache(version)


@dataclass(frozen=True)
class Signature:
    """Names and values in the pipeline's order.

    Attributes:
        entries: all of them, defaults included.
        brief: names of the entries that the text shows: those that scores depend on and that do not follow from
            the package's version and the variant.
    """

    entries: Mapping[str, Any]
    brief: tuple[str, ...]

    def __str__(self) -> str:
        """One line to print beside a score: ``mars|version:0.1.0|variant:plus|references:1|...``."""
        return "|".join(["mars", *(f"{name}:{_brief(self.entries[name])}" for name in self.brief)])

    def __repr__(self) -> str:
        return f"Signature('{self}')"

    def to_dict(self) -> dict[str, Any]:
        """All entries as plain data."""
        return dict(self.entries)


def _brief(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={weight:g}" for name, weight in value.items())
    return str(value)


def make_signature(settings: Settings, reference_counts: Iterable[int], samples: str = "") -> Signature:
    """The signature of a call.

    Args:
        settings: of the scorer.
        reference_counts: number of human references of each row.
        samples: where samples are from that came with the rows: ``"given"`` or ``"others"``; "": there are none.
    """
    usual = dict(resolve_settings("base", settings.variant).items())
    counts = sorted(set(reference_counts))
    references = str(counts[0]) if len(counts) == 1 else "varying" if counts else "0"
    entries: dict[str, Any] = {"version": __version__, "variant": settings.variant, "references": references}
    if samples:
        entries["samples"] = samples
    brief = list(entries)
    for name, value in settings.items():
        shows = name in ("dtype", "idf_corpus") or value != usual[name]
        if name in _MODELS:
            value, shows = str(fingerprint(value)), name in used_models(settings)
        elif name == "idf_corpus":
            value = "references" if value is None else _corpus(value)
        elif name == "engine" and shows:
            value = settings.models.numbers
        entries[name] = dict(value) if isinstance(value, Mapping) else value
        if shows:
            brief.append(name)
    masks = settings.masking.max_mask_ratio > 0
    entries["spacy_pipeline"] = pipeline_name(settings.language) if masks else None
    entries |= {name: _installed(name) for name in _LIBRARIES}
    brief += ["spacy_pipeline", *_LIBRARIES]
    return Signature(entries, tuple(name for name in brief if masks or name not in _OF_MASKING))


def used_models(settings: Settings) -> list[str]:
    """The settings of the models that scores may depend on."""
    used = {
        "language_model": settings.masking.max_mask_ratio > 0
        or settings.similarity.likelihood_weight > 0
        or settings.sampling.sample_count > 0,
        "encoder": True,
        "entailment_model": settings.similarity.contradiction_penalty > 0,
    }
    return [name for name in _MODELS if used[name]]


def _corpus(texts: Iterable[str]) -> str:
    """Hash and size of the distinct texts of an IDF corpus."""
    distinct = sorted(set(texts))
    digest = hashlib.blake2b("\0".join(distinct).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{digest}({len(distinct)})"
