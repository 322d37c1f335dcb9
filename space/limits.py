"""Limits on what visitors may send, how often, how long it may take, and on what the log says of it.

Each refusal says what to do instead.
"""

import asyncio
import ipaddress
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import gradio as gr
from gradio.context import LocalContext
from gradio.queueing import Queue
from gradio.server_messages import ProcessCompletedMessage
from gradio.utils import run_coro_in_background
from starlette.responses import JSONResponse

from mars_score.progress import Progress

BODY_BYTES = 200_000  # per request
CALL_SECONDS = 120.0  # that a single call may take
JOBS = 2  # of an address, waiting or running
QUEUE_JOBS = 64  # that wait
UNHEARD_SECONDS = 10.0  # after which a job is dropped to whose answer nobody listens
MODEL = "model"  # concurrency_id of the events that run models

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
        """Count an amount that an address used."""
        with self._lock:
            self._uses.append((self._clock(), address, amount))


@lru_cache(1000)
def address_of(host: str | None) -> str:
    """Return what tells visitors apart: the address; of IPv6 the network that one customer has."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host or "unknown"
    return str(address if address.version == 4 else ipaddress.ip_network((address, 64), strict=False))


def sender_of(request: Any) -> str:
    """Return the address of a request; requests without a client share one."""
    return address_of(getattr(getattr(request, "client", None), "host", None))


class Gate:
    """ASGI middleware that refuses large requests, uploads, and addresses that send many requests.

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


class WorkLimit:
    """Counts the work for visitors by address, and stops what takes too long or whose visitor has left."""

    def __init__(self, allowance: Allowance | None = None, call_seconds: float = CALL_SECONDS) -> None:
        self._allowance = allowance or Allowance(2 * CALL_SECONDS, 600, "seconds of computing")
        self._call_seconds = call_seconds

    @contextmanager
    def count(self, request: gr.Request | None) -> Iterator[Progress]:
        """Count what the block takes for the address of a request; yield the progress function to score with.

        Raises:
            Refused: the address has used its time; by the progress function: this call has, or its client left.
        """
        address = sender_of(request)
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


class Messages(asyncio.Queue[Any]):
    """Gradio's messages to a client, which know whether it listens."""

    def __init__(self) -> None:
        super().__init__()
        self._listeners, self._heard = 0, 0.0

    async def get(self) -> Any:
        """Wait for the next message, as a client's stream does as long as it is open."""
        self._listeners += 1
        try:
            return await super().get()
        finally:
            self._listeners -= 1
            self._heard = time.monotonic()

    def are_unheard(self, since: float) -> bool:
        """Tell whether nobody has listened for ``UNHEARD_SECONDS``, counted from ``since`` at the earliest."""
        return not self._listeners and time.monotonic() > max(since, self._heard) + UNHEARD_SECONDS


class FairQueue(Queue):  # type: ignore[misc]
    """Gradio's queue, in which no address can make the others wait.

    An address has at most ``JOBS`` jobs for the models in it, its second one comes after the first ones of others,
    and jobs to whose answers nobody listens are dropped.
    """

    def __init__(self, blocks: gr.Blocks) -> None:
        super().__init__(
            live_updates=True,
            concurrency_count=blocks.max_threads,
            update_intervals=1,
            max_size=QUEUE_JOBS,
            blocks=blocks,
            default_concurrency_limit=4,
        )
        # Start-time fair queueing: a job has the turn of the job begun last, or the one after its address's last.
        self._turn = 0
        self._turns: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """Take a job, or refuse it as gradio refuses jobs when its queue is full."""
        fn, address, events = self.blocks.fns.get(body.fn_index), sender_of(request), self.event_ids_to_events
        is_job = fn is not None and fn.concurrency_id == MODEL
        turns = [
            self._turns[event]
            for event in events.values()
            if event in self._turns and sender_of(event.request) == address
        ]
        if is_job and len(turns) >= JOBS:
            return False, f"{JOBS} of your calls are not answered yet. Please wait for them.", "queue_full"
        body.session_hash = body.session_hash or uuid.uuid4().hex
        if body.session_hash not in self.pending_messages_per_session:
            self.pending_messages_per_session[body.session_hash] = Messages()
        taken, answer, state = await super().push(body, request, username)
        if is_job and taken:
            self._turns[events[answer]] = max(self._turn, *(turn + 1 for turn in turns), 0)
            waiting = self.event_queue_per_concurrency_id[MODEL].queue
            waiting.sort(key=lambda event: (self._turns[event], event.enqueue_time))
        return taken, answer, state

    def get_events(self) -> Any:
        """Take the next job out of the queue."""
        chosen = super().get_events()
        if chosen:
            self._turn = max(self._turns.get(event, self._turn) for event in chosen[0])
        return chosen

    def send_message(self, event: Any, event_message: Any) -> None:
        """Send a message; a job whose answer is sent counts no more, which gradio would see a little later."""
        super().send_message(event, event_message)
        if isinstance(event_message, ProcessCompletedMessage):
            self.event_ids_to_events.pop(event._id, None)

    def start(self) -> None:
        """Start the queue, and the dropping of jobs."""
        super().start()
        run_coro_in_background(self._drop_unheard)

    async def _drop_unheard(self) -> None:
        while not self.stopped:
            await asyncio.sleep(1)
            for event in list(self.event_ids_to_events.values()):
                messages = self.pending_messages_per_session.get(event.session_hash)
                if messages is None or messages.are_unheard(event.enqueue_time):
                    await self.clean_events(session_hash=event.session_hash)


def hide_texts() -> None:
    """Have tracebacks printed and logged without messages, which may hold visitors' texts, by gradio as well."""
    traceback.print_exception = _print_place


def place_of(error: BaseException) -> str:
    """Name the type of an exception and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    places = (f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    return "\n  ".join([type(error).__name__, *places])


def _print_place(
    error: Any, value: Any = None, tb: Any = None, limit: Any = None, file: Any = None, chain: bool = True
) -> None:
    error = error if value is None else value
    if isinstance(error, BaseException):
        print(place_of(error), file=file or sys.stderr)
