"""Learned heads: scores learned from human ratings, on top of MARS's own terms or from the texts alone."""
