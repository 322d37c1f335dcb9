"""Candidate and augmented references -> score: sentence embeddings, geometric weights, aggregation."""
