"""Read the rows of a call or a file, check them, and name their place in errors."""
