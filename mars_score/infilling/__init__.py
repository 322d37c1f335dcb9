"""Fill the blanks of templates: generate, judge and revise; a planner looks ahead to the text that follows."""
