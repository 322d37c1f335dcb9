"""Models by name, folder or wheel: loading, fingerprints, signatures, and how they are run."""
