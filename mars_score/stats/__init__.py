"""Correlations, resampling and paired tests."""
