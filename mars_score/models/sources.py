"""Where a model comes from: an object, a folder or the Hub. For packages see :mod:`mars_score.models.packages`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mars_score.errors import ModelUnavailableError

if TYPE_CHECKING:
    from mars_score.models.running import Runtime

_HUB_SECONDS = 5.0  # longest wait for an answer of the Hub
LoadOptions = dict[str, str | bool]  # keyword arguments of from_pretrained


@dataclass(frozen=True)
class Source:
    """The source of a model, and the version in use.

    Attributes:
        name: Hub id, package, name of a shipped NLI model, ``"folder"``, the class of an object, or ``"none"``.
        revision: commit, version, or hash of the files, or ``""`` if there is no model. It is None (unknown) for
            an object and for a Hub model that was never downloaded. Their outputs are not stored.
    """

    name: str
    revision: str | None

    def __str__(self) -> str:
        return self.name if self.revision == "" else f"{self.name}@{self.revision or 'unknown'}"

    def matches(self, text: str) -> bool:
        """Compare with the text of a source. If the revision is unknown, only the name counts."""
        return text == str(self) if self.revision is not None else text.startswith(f"{self.name}@")

    def is_here(self, store: Path | None) -> bool:
        """Tell whether the model's files are on this machine, possibly in the store."""
        return True

    @property
    def install(self) -> str:
        """Return the command that installs a missing model, or where it is fetched from."""
        return ""

    def arguments(self, runtime: Runtime) -> tuple[str, LoadOptions]:
        """Return the arguments of ``from_pretrained``: a folder or Hub id, and keyword arguments.

        A packed model is unpacked first, once per store, or without a store once per process.

        Raises:
            ModelUnavailableError: the files are missing or damaged. The message names the remedy.
        """
        raise TypeError(f"{self.name} has no files")


class ReadyMade(Source):
    """A model that is passed as an object, or None."""


@dataclass(frozen=True)
class Folder(Source):
    """A folder in the format of transformers or sentence-transformers."""

    path: Path

    def arguments(self, runtime: Runtime) -> tuple[str, LoadOptions]:
        """Return the folder."""
        return str(self.path), {}


@dataclass(frozen=True)
class HubModel(Source):
    """A model of the Hub. ``asked`` is the branch, tag or commit of ``"name@revision"``."""

    asked: str | None

    def is_here(self, store: Path | None) -> bool:
        """Tell whether the model is in the Hub's cache."""
        return self.revision is not None

    @property
    def install(self) -> str:
        """Say where the model is fetched from."""
        return "fetched from the Hub at its first use"

    def arguments(self, runtime: Runtime) -> tuple[str, LoadOptions]:
        """Return the Hub id, and the commit of the copy on this machine.

        Without a connection the copy is loaded offline, as transformers would retry the Hub for nearly a minute.
        """
        from huggingface_hub import constants

        revision = self.revision or self.asked
        options: LoadOptions = {"revision": revision} if revision else {}
        if not constants.is_offline_mode() and (error := hub_error()):
            if self.revision is None:
                name = f"{self.name}@{self.asked}" if self.asked else self.name
                raise ModelUnavailableError(
                    f"could not load {name!r}: {constants.ENDPOINT} cannot be reached ({error}). Take "
                    'evaluate.load("mars", "plus") or preset="mini", which run without the Hub; or check the '
                    "connection, or name a local folder"
                )
            options["local_files_only"] = True
        return self.name, options


def hub_error() -> Exception | None:
    """Return the error if the Hub cannot be reached."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_SECONDS)
    except Exception as error:  # Versions of huggingface_hub use different HTTP libraries.
        return error
    return None
