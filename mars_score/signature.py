"""The signature of a score, after sacreBLEU: everything that the score depends on besides the texts."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mars_score.language import pipeline_name
from mars_score.metrics.paper import PaperConfig
from mars_score.models.loading import locate
from mars_score.models.packages import installed_version
from mars_score.models.running import number_type
from mars_score.presets import PRESETS, ModelSettings
from mars_score.settings import Settings, resolve_settings
from mars_score.version import __version__

MODELS = ("language_model", "encoder", "entailment_model")  # settings that name models
LIBRARIES = ("rapidfuzz", "torch", "transformers", "sentence-transformers")
_MASKING = ("idf_corpus", "spacy_pipeline", "rapidfuzz")  # entries that matter only if words are masked


@dataclass(frozen=True)
class Signature:
    """Names and values of everything that a score depends on besides the texts.

    Attributes:
        entries: all names and values, including defaults.
        brief: names of the entries in the text of the signature. The others do not change scores, or follow from
            version and variant.
        preset: the preset that has these models, or ``"own"``.
    """

    entries: Mapping[str, object]
    brief: tuple[str, ...]
    preset: str = "own"

    def __str__(self) -> str:
        """Return a line to report with a score: ``mars|version:0.1.0|variant:plus|references:1|...``."""
        return "|".join(["mars", *(f"{name}:{_brief(self.entries[name])}" for name in self.brief)])

    @property
    def short(self) -> str:
        """Return a short form, ``mars-plus.mini.0.1.0#a1b2c3``, that ends with a hash of the line."""
        digest = hashlib.blake2b(str(self).encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()
        return f"mars-{self.entries['variant']}.{self.preset}.{self.entries['version']}#{digest}"

    def __repr__(self) -> str:
        return f"Signature('{self}')"

    def to_dict(self) -> dict[str, object]:
        """Return all entries."""
        return dict(self.entries)


def _brief(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={weight:g}" for name, weight in value.items())
    return str(value)


def make_signature(
    settings: Settings,
    reference_counts: Iterable[int],
    *,
    has_samples: bool = False,
    tasks: Iterable[str] = (),
    device: str | None = None,
) -> Signature:
    """Make the signature of a call.

    Args:
        settings: settings of the scorer.
        reference_counts: number of human references of each row.
        has_samples: whether any row has samples.
        tasks: tasks of the rows.
        device: device of the models, which decides the number type ``"auto"``, or None for the default device.
    """
    defaults = dict(resolve_settings("base", settings.variant).items())
    counts = sorted(set(reference_counts))
    references = str(counts[0]) if len(counts) == 1 else "varying" if counts else "0"
    entries: dict[str, object] = {"version": __version__, "variant": settings.variant, "references": references}
    if has_samples:
        entries["samples"] = "given"
    brief = list(entries)
    entries["task"] = task = ",".join(sorted(set(tasks))) or settings.task
    masks = isinstance(settings.config, PaperConfig) and settings.config.masks
    if task not in (None, "text") and not masks:
        brief.append("task")
    for name, value in settings.items():
        if name == "task":
            continue
        shows = name in ("dtype", "idf_corpus") or value != defaults[name]
        if name in MODELS:
            value, shows = str(locate(value)), name in settings.used_models
        elif name == "dtype":
            value = number_type(value, device)
        elif name == "idf_corpus":
            value = "references" if value is None else _corpus(value)
        entries[name] = dict(value) if isinstance(value, Mapping) else value
        if shows:
            brief.append(name)
    entries["spacy_pipeline"] = pipeline_name(settings.language) if masks else None
    entries |= {name: installed_version(name) for name in LIBRARIES}
    brief += ["spacy_pipeline", *LIBRARIES]
    names = tuple(name for name in brief if masks or name not in _MASKING)
    return Signature(entries, names, _preset_of(settings.models))


def _preset_of(models: ModelSettings) -> str:
    for preset, names in PRESETS.items():
        if all(getattr(models, setting) == name for setting, name in names.items()):
            return preset
    return "own"


def _corpus(texts: Iterable[str]) -> str:
    """Return a hash of the different texts of an IDF corpus, and how many there are."""
    distinct = sorted(set(texts))
    digest = hashlib.blake2b("\0".join(distinct).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{digest}({len(distinct)})"
