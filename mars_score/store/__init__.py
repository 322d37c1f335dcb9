"""Results kept on disk between processes."""
