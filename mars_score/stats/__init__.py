"""Correlations, and what resampling of whole groups says about them and about means."""

from __future__ import annotations

from typing import Literal

Test = Literal["randomisation", "bootstrap"]  # of two systems
TESTS: dict[Test, str] = {"randomisation": "approximate randomisation", "bootstrap": "paired bootstrap"}
