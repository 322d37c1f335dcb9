"""Training of learned heads from human ratings; :mod:`mars_score.scoring` applies them."""
