"""Candidate and augmented references -> score: sentence embeddings, and how similarities combine."""
