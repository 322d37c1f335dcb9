"""Limits on what a visitor may send, and how often; each refusal says what to do instead."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

CONTEXT_CHARACTERS = 5_000
REFERENCE_CHARACTERS = 600
CANDIDATE_CHARACTERS = 1_500
REFERENCES = 4
SAMPLES = 16
PROMPT_CHARACTERS = 1_000
CANDIDATES = 12
BATCH_ROWS = 200
BATCH_BYTES = 1_000_000
# Of all rows together, so that a batch ends in minutes. Planning takes about seven times as long.
BATCH_CONTEXT_CHARACTERS = 200_000
BATCH_REFERENCE_CHARACTERS = 40_000
BATCH_PLANNED_REFERENCE_CHARACTERS = 6_000
LINK_CHARACTERS = 7_500  # servers commonly take 8,192 bytes for the first line of a request
BODY_BYTES = 1_500_000  # per request, uploads included

_ELSEWHERE = "On your own machine MARS has no such limit."


class Refused(ValueError):  # noqa: N818
    """Input that is not accepted; the message is shown to the visitor."""


def check_texts(context: str, references: Sequence[str], candidates: Sequence[str], where: str = "") -> None:
    """Check the lengths and numbers of the texts of one row.

    Args:
        context: of the row.
        references: of the row, none blank; at least one where the context is blank.
        candidates: of the row; at least one.
        where: put before the message, such as ``"Row 3: "``.

    Raises:
        Refused: too many or too long, or nothing to score.
    """
    if not (context.strip() or any(text.strip() for text in references)):
        raise Refused(f"{where}Please give a reference, which is a text that says it right, or a context.")
    if not any(text.strip() for text in candidates):
        raise Refused(f"{where}Please give at least one candidate: a text to score.")
    _check_number(where, "references", len(references), REFERENCES)
    _check_number(where, "candidates", len(candidates), CANDIDATES)
    _check_length(f"{where}The context", context, CONTEXT_CHARACTERS)
    for text in references:
        _check_length(f"{where}A reference", text, REFERENCE_CHARACTERS)
    for text in candidates:
        _check_length(f"{where}A candidate", text, CANDIDATE_CHARACTERS)


def _check_number(where: str, what: str, number: int, limit: int) -> None:
    if number > limit:
        raise Refused(f"{where}{number:,} {what} are too many: at most {limit} are allowed here. {_ELSEWHERE}")


def _check_length(what: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise Refused(
            f"{what} has {len(text):,} characters; at most {limit:,} are allowed here. Please shorten it. "
            f"{_ELSEWHERE}"
        )


def check_batch(contexts: Sequence[str], references: Sequence[Sequence[str]], *, planned: bool) -> None:
    """Check that a batch would not take too long.

    Raises:
        Refused: all contexts or all references together are too long.
    """
    limit = BATCH_PLANNED_REFERENCE_CHARACTERS if planned else BATCH_REFERENCE_CHARACTERS
    total = sum(len(text) for row in references for text in row)
    if total > limit:
        hint = " with planning (without it, more)" if planned else ""
        raise Refused(
            f"All references together have {total:,} characters; at most {limit:,} are allowed here{hint}. "
            f"{_ELSEWHERE}"
        )
    total, limit = sum(map(len, contexts)), BATCH_CONTEXT_CHARACTERS
    if total > limit:
        raise Refused(
            f"All contexts together have {total:,} characters; at most {limit:,} are allowed here. {_ELSEWHERE}"
        )


class RateLimit:
    """A limit on the calls of each visitor.

    Args:
        calls: at most, within any ``seconds``.
        seconds: length of the window.
        clock: the current time in seconds; another one for tests.
    """

    def __init__(self, calls: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.calls, self.seconds, self._clock = calls, seconds, clock
        self._times: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def check(self, visitor: str) -> None:
        """Count a call.

        Raises:
            Refused: too many; the message says how long to wait.
        """
        now = self._clock()
        with self._lock:
            self._forget(now)
            times = self._times.setdefault(visitor, deque())
            if len(times) >= self.calls:
                wait = int(times[0] + self.seconds - now) + 1
                raise Refused(
                    f"That was fast: {self.calls} requests in {self.seconds:.0f} seconds are the limit here. "
                    f"Please wait {wait} second{'' if wait == 1 else 's'} and try again."
                )
            times.append(now)

    def _forget(self, now: float) -> None:
        for visitor in list(self._times):
            times = self._times[visitor]
            while times and times[0] <= now - self.seconds:
                times.popleft()
            if not times:
                del self._times[visitor]


class BodyLimit:
    """ASGI middleware: a request of more than ``limit`` bytes is answered with status 413 without being read."""

    def __init__(self, app: Callable[..., object], limit: int = BODY_BYTES) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:  # type: ignore[type-arg]
        """Pass the request on, counting its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)  # type: ignore[misc]
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self._limit:
            await _too_large(send)
            return
        seen = 0
        answered = False

        async def counted() -> dict:  # type: ignore[type-arg]
            nonlocal seen, answered
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit and not answered:  # sent in chunks, without a Content-Length
                answered = True
                await _too_large(send)
                return {"type": "http.disconnect"}
            return message  # type: ignore[no-any-return]

        async def unless_answered(message: dict) -> None:  # type: ignore[type-arg]
            if not answered:
                await send(message)

        await self._app(scope, counted, unless_answered)  # type: ignore[misc]


async def _too_large(send: Callable) -> None:  # type: ignore[type-arg]
    body = b'{"detail": "The request is too large."}'
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
