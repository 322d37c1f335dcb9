"""Models by name, folder or wheel: sources, loading, and how they are run."""
