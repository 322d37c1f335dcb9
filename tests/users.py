"""Acting as a user whom permissions bind, also when the tests run as root."""

import os
from contextlib import contextmanager

import pytest


@contextmanager
def unprivileged():
    """As a user whom permissions bind."""
    if os.name != "posix":
        pytest.skip("needs POSIX permissions")
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
