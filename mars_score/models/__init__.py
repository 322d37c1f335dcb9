"""Models: where a name leads, loading, and how they are run."""
