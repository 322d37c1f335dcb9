"""Work for a visitor: counted by address, and stopped when it takes too long or the visitor has left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gradio as gr
from gradio.context import LocalContext

from mars_score.space.limits import CALL_SECONDS, Allowance, Refused, address_of
from mars_score.store.runtime import Progress


class Work:
    """Work for visitors.

    Args:
        allowance: seconds of work for each address.
        call_seconds: that a single call may take.
    """

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
        start, has_left = time.monotonic(), _departure()

        def report(stage: str, done: int, total: int) -> None:
            if has_left():
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


def _departure() -> Callable[[], bool]:
    """What says whether the client whose event is being handled has closed its connection."""
    blocks, event_id = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = blocks._queue.event_ids_to_events.get(event_id) if blocks and event_id else None
    return lambda: event is not None and not event.alive
