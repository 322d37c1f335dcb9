"""Rows of a call or a file: read, checked, and named by their place in errors."""
