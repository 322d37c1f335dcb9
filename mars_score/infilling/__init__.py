"""Template -> augmented reference: generate, judge, revise, while planning towards the words to come."""
