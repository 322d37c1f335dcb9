"""Training of learned heads, from human ratings or from texts alone; :mod:`mars_score.scoring` applies them."""
