"""Models by name, folder or wheel: loading, fingerprints, torch modes, memory."""
