"""Lets ``evaluate.load("mars")`` find the metric in a checkout; it is in mars_metric.py."""

from mars_metric import Mars as Mars  # From: mars-score
