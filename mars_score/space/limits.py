"""Limits on what a visitor may send, how often, and how long it may take; each refusal says what to do instead."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from starlette.responses import JSONResponse

CONTEXT_CHARACTERS = 5_000
REFERENCE_CHARACTERS = 600
CANDIDATE_CHARACTERS = 1_500
REFERENCES = 4
CANDIDATES = 12
PAPER_CHARACTERS = 400  # of all references together, where the paper's MARS is computed
LINK_CHARACTERS = 7_500  # servers commonly take 8,192 bytes for the first line of a request
BODY_BYTES = 200_000  # per request
CALL_SECONDS = 120.0  # that a single call may take

_ELSEWHERE = "On your own machine MARS has no such limit."


class Refused(ValueError):  # noqa: N818
    """Input that is not accepted; the message is shown to the visitor."""


def check_texts(context: str, references: Sequence[str], candidates: Sequence[str]) -> None:
    """Check the lengths and numbers of the texts of a question.

    Args:
        context: that the candidates are for.
        references: none blank; at least one where the context is blank.
        candidates: at least one.

    Raises:
        Refused: too many or too long, or nothing to score.
    """
    if not (context.strip() or references):
        raise Refused("Please give a reference, which is a text that says it right, or a context.")
    if not candidates:
        raise Refused("Please give at least one candidate: a text to score.")
    for what, number, limit in (
        ("references", len(references), REFERENCES),
        ("candidates", len(candidates), CANDIDATES),
    ):
        if number > limit:
            raise Refused(f"{number:,} {what} are too many: at most {limit} are allowed here. {_ELSEWHERE}")
    _check_length("The context has", len(context), CONTEXT_CHARACTERS)
    for text in references:
        _check_length("A reference has", len(text), REFERENCE_CHARACTERS)
    for text in candidates:
        _check_length("A candidate has", len(text), CANDIDATE_CHARACTERS)


def check_paper(references: Sequence[str]) -> None:
    """Check that the paper's MARS of a question would not take minutes.

    Raises:
        Refused: the references are too long.
    """
    _check_length(
        "For the paper's MARS: all references together have", sum(map(len, references)), PAPER_CHARACTERS
    )


def _check_length(what: str, length: int, limit: int) -> None:
    if length > limit:
        raise Refused(
            f"{what} {length:,} characters; at most {limit:,} are allowed here. Please shorten it. {_ELSEWHERE}"
        )


class Allowance:
    """What each address may use within any ``seconds``: requests or seconds of work.

    Args:
        amount: for each address.
        seconds: length of the window.
        unit: of the amount, in the plural.
        clock: the current time in seconds; another one for tests.
    """

    def __init__(
        self, amount: float, seconds: float, unit: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.amount, self.seconds, self.unit, self._clock = amount, seconds, unit, clock
        self._used: dict[str, list[tuple[float, float]]] = {}  # when, how much
        self._lock = threading.Lock()

    def check(self, address: str) -> None:
        """Check that something is left.

        Raises:
            Refused: all is used; the message says how long to wait.
        """
        with self._lock:
            self._forget()
            used = self._used.get(address, [])
            left = sum(amount for _, amount in used) - self.amount
            if left < 0:
                return
            for when, amount in used:
                left -= amount
                if left < 0:
                    wait = int(when + self.seconds - self._clock()) + 1
                    raise Refused(
                        f"{self.amount:g} {self.unit} in {self.seconds:g} seconds are the limit here. Please wait "
                        f"{wait} second{'' if wait == 1 else 's'} and try again. {_ELSEWHERE}"
                    )

    def charge(self, address: str, amount: float = 1) -> None:
        """Note that an address used an amount."""
        with self._lock:
            self._used.setdefault(address, []).append((self._clock(), amount))

    def _forget(self) -> None:
        """Drop what is past, so that memory does not grow with the number of addresses."""
        start = self._clock() - self.seconds
        recent = {name: [use for use in uses if use[0] > start] for name, uses in self._used.items()}
        self._used = {name: uses for name, uses in recent.items() if uses}


def address_of(host: str | None) -> str:
    """What tells visitors apart: the address, of IPv6 the network that one customer has."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host or "unknown"
    return str(address if address.version == 4 else ipaddress.ip_network((address, 64), strict=False))


class Gate:
    """ASGI middleware: refuses large requests, uploads, and addresses that send many requests.

    Gradio takes uploads on any page, and limits neither the size nor the number of other requests.

    Args:
        app: what answers.
        requests: of each address.
    """

    def __init__(self, app: Callable[..., Any], requests: Allowance | None = None) -> None:
        self._app = app
        self._requests = requests or Allowance(60, 60, "requests")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or answer it with status 403, 411, 413 or 429."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Any) -> JSONResponse | None:
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return None
        if scope["path"].rstrip("/").endswith("/upload"):
            return JSONResponse({"detail": "This page takes no files."}, 403)
        length = dict(scope["headers"]).get(b"content-length", b"")
        if not length.isdigit():
            return JSONResponse({"detail": "The request does not say how long it is."}, 411)
        if int(length) > BODY_BYTES:
            return JSONResponse({"detail": "The request is too large."}, 413)
        address = address_of(scope["client"][0] if scope.get("client") else None)
        try:
            self._requests.check(address)
        except Refused as error:
            return JSONResponse({"detail": str(error), "error": str(error)}, 429)
        self._requests.charge(address)
        return None
