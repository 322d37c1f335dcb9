"""Template -> augmented reference: generate, judge, revise; with a planner also with a view to what follows."""
