"""Augmented references: masking, infilling and sampling."""
