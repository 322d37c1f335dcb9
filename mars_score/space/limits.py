"""Limits on what a visitor may send, how often, and how long it may take; each refusal says what to do instead."""

import ipaddress
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from starlette.responses import JSONResponse

from mars_score.progress import Progress

BODY_BYTES = 200_000  # per request
CALL_SECONDS = 120.0  # that a single call may take

ELSEWHERE = "On your own machine MARS has no such limit."


class Refused(ValueError):  # noqa: N818
    """Input that is not accepted; the message is shown to the visitor."""


class Allowance:
    """The amount that each address may use within any ``seconds``: requests or seconds of work."""

    def __init__(
        self, amount: float, seconds: float, unit: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.amount, self.seconds, self.unit, self._clock = amount, seconds, unit, clock
        self._uses: list[tuple[float, str, float]] = []  # when, by whom, how much
        self._lock = threading.Lock()

    def check(self, address: str) -> None:
        """Raise Refused where all is used; the message says how long to wait."""
        now, used = self._clock(), 0.0
        with self._lock:
            self._uses = [use for use in self._uses if use[0] > now - self.seconds]
            own = [(when, amount) for when, who, amount in self._uses if who == address]
        for when, amount in reversed(own):
            used += amount
            if used >= self.amount:
                wait = int(when + self.seconds - now) + 1
                raise Refused(
                    f"{self.amount:g} {self.unit} in {self.seconds:g} seconds are the limit here. Please wait "
                    f"{wait} second{'' if wait == 1 else 's'} and try again. {ELSEWHERE}"
                )

    def charge(self, address: str, amount: float = 1) -> None:
        """Note that an address used an amount."""
        with self._lock:
            self._uses.append((self._clock(), address, amount))


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


class Work:
    """Work for visitors, counted by address, and stopped when it takes too long or the visitor has left."""

    def __init__(self, allowance: Allowance | None = None, call_seconds: float = CALL_SECONDS) -> None:
        self._allowance = allowance or Allowance(2 * CALL_SECONDS, 600, "seconds of computing")
        self._call_seconds = call_seconds

    @contextmanager
    def of(self, request: gr.Request | None) -> Iterator[Progress]:
        """Count what the block takes for the address of a request; yields the progress function to score with.

        Raises:
            Refused: the address has used its time; by the progress function: this call has, or its client left.
        """
        client = getattr(request, "client", None)
        address = address_of(getattr(client, "host", None))
        self._allowance.check(address)
        # The event that is being handled; it is no longer alive once its client has closed the connection.
        blocks, event_id = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
        event = blocks._queue.event_ids_to_events.get(event_id) if blocks and event_id else None
        start = time.monotonic()

        def report(stage: str, done: int, total: int) -> None:
            if event is not None and not event.alive:
                raise Refused("The visitor has left.")
            if time.monotonic() - start > self._call_seconds:
                raise Refused(
                    f"This took longer than {self._call_seconds:g} seconds, and was stopped. Please send fewer or "
                    "shorter texts."
                )

        try:
            yield report
        finally:
            self._allowance.charge(address, time.monotonic() - start)
