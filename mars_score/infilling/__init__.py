"""Fill the blanks of templates, with a planner that looks ahead (section 2.2 of the paper)."""
