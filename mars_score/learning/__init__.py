"""A correction of MARS's score that is learned from ratings: how it scores, and its training."""
