"""What evaluate.load("mars") finds in a checkout: the module is mars_metric.py."""

from mars_metric import Mars as Mars  # From: mars-score
