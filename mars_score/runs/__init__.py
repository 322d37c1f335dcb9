"""Runs over files of any length: in chunks, by several processes or machines, and safe to stop at any moment."""
