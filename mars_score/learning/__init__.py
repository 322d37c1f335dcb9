"""Learned heads, which compute the score from features of a row, and their training on ratings or texts."""
