"""The rated sets, built from their public repositories."""
