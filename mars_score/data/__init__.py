"""Rows of a call or a file: read, checked, named by their place when they are wrong."""
