"""Tests of MARS in the folders of the package, and what they share."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
