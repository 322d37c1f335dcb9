"""Limit the size and number of requests, computing time, and what is logged about visitors."""

import ipaddress
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mars_score.progress import Progress

BODY_BYTES = 200_000  # of a request
CALL_SECONDS = 120.0  # of computing for a call
WAITING_CALLS = 64  # in the queue; with more, visitors would wait many minutes

ELSEWHERE = "In Python MARS has no such limit."


class Refused(ValueError):  # noqa: N818
    """Input that is not accepted. The message is shown to the visitor and says what to do instead."""


class Allowance:
    """The amount of something, such as requests, that each address may use within any ``seconds``."""

    def __init__(
        self, amount: float, seconds: float, unit: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.amount, self.seconds, self.unit, self._clock = amount, seconds, unit, clock
        self._uses: list[tuple[float, str, float]] = []  # time, address, amount
        self._lock = threading.Lock()

    def check(self, address: str) -> None:
        """Raise Refused with the time to wait if an address has used up its amount."""
        now, used = self._clock(), 0.0
        with self._lock:
            self._uses = [use for use in self._uses if use[0] > now - self.seconds]
            uses = [(when, amount) for when, user, amount in self._uses if user == address]
        for when, amount in reversed(uses):
            used += amount
            if used >= self.amount:
                wait = int(when + self.seconds - now) + 1
                raise Refused(
                    f"{self.amount:g} {self.unit} in {self.seconds:g} seconds are the limit here. Please wait "
                    f"{wait} second{'' if wait == 1 else 's'} and try again. {ELSEWHERE}"
                )

    def charge(self, address: str, amount: float = 1) -> None:
        """Count an amount that an address used."""
        with self._lock:
            self._uses.append((self._clock(), address, amount))


def visitor_of(client: tuple[str, int] | None, host: str | None) -> str | None:
    """Return the address by which limits count, or None for a visitor on this machine, who has no limits.

    This is the IPv4 address, or the IPv6 /64 network, which one customer has. A visitor is on this machine if the
    page is not on the Hub, and both the client's address and the host of the request are local. A visitor behind a
    local proxy is not, if the proxy passes them on.
    """
    name = client[0] if client else None
    if "SPACE_ID" not in os.environ and _is_here(name) and _is_here(_name_in(host)):
        return None
    try:
        address = ipaddress.ip_address(name or "")
    except ValueError:
        return name or "unknown"
    return str(address if address.version == 4 else ipaddress.ip_network((address, 64), strict=False))


def _is_here(name: str | None) -> bool:
    """Tell whether a host name or address is local."""
    try:
        return name == "localhost" or ipaddress.ip_address(name or "").is_loopback
    except ValueError:
        return False


def _name_in(host: str | None) -> str | None:
    """Return the name or address in a header "Host" without the port."""
    try:
        return urlsplit(f"//{host or ''}").hostname
    except ValueError:
        return None


class RequestLimit:
    """ASGI middleware that refuses large requests, uploads, and addresses that send many requests.

    Gradio accepts uploads on any page, and limits neither the size nor the number of other requests.
    """

    def __init__(self, app: ASGIApp, requests: Allowance | None = None) -> None:
        self._app = app
        self._requests = requests or Allowance(60, 60, "requests")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with status 403, 411, 413 or 429."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return None
        if scope["path"].rstrip("/").endswith("/upload"):
            return JSONResponse({"detail": "This page takes no files."}, 403)
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        if not length.isdigit():
            return JSONResponse({"detail": "The request does not say how long it is."}, 411)
        if int(length) > BODY_BYTES:
            return JSONResponse({"detail": "The request is too large."}, 413)
        address = visitor_of(scope.get("client"), headers.get(b"host", b"").decode("latin-1"))
        if address is None:
            return None
        try:
            self._requests.check(address)
        except Refused as error:
            return JSONResponse({"detail": str(error), "error": str(error)}, 429)
        self._requests.charge(address)
        return None


class WorkLimit:
    """Limits the computing time of each address and of each call, except for visitors on this machine."""

    def __init__(self, allowance: Allowance | None = None, call_seconds: float = CALL_SECONDS) -> None:
        self._allowance = allowance or Allowance(2 * CALL_SECONDS, 600, "seconds of computing")
        self._call_seconds = call_seconds

    def check(self, request: gr.Request | None) -> str | None:
        """Return the address of a visitor, None on this machine. Raise Refused if it has used up its time."""
        client = request.client if request else None
        address = visitor_of(client and (client.host, client.port), request and request.headers.get("host"))
        if address is not None:
            self._allowance.check(address)
        return address

    @contextmanager
    def count(self, request: gr.Request | None) -> Iterator[Progress]:
        """Count the time of the block for the address of a request, and yield a progress function.

        Raises:
            Refused: the address has used up its time. The progress function raises it if the call takes too long.
        """
        address = self.check(request)
        start = time.monotonic()

        def report(stage: str, done: int, total: int) -> None:
            if address is not None and time.monotonic() - start > self._call_seconds:
                raise Refused(
                    f"This took longer than {self._call_seconds:g} seconds, and was stopped. Please send fewer or "
                    "shorter texts."
                )

        try:
            yield report
        finally:
            if address is not None:
                self._allowance.charge(address, time.monotonic() - start)


def hide_texts() -> None:
    """Print all tracebacks, also those of gradio, without messages, which may hold visitors' texts."""
    traceback.print_exception = _print_place


def place_of(error: BaseException) -> str:
    """Return the type of an exception and the lines of code that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    places = (f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    return "\n  ".join([type(error).__name__, *places])


def _print_place(
    error: object,
    value: object = None,
    tb: object = None,
    limit: object = None,
    file: Any = None,
    chain: bool = True,
) -> None:
    error = error if value is None else value
    if isinstance(error, BaseException):
        print(place_of(error), file=file or sys.stderr)
