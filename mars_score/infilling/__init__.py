"""Template -> augmented reference: generate, judge, revise; with a planner also while looking at the words to come."""
