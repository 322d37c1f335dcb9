"""Correlations, and resampling of whole groups."""
