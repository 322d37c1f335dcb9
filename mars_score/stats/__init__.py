"""Correlations, and what resampling of whole groups says about them and about means."""
