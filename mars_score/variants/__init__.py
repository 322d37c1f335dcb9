"""Call the models for the inputs of each formula, and collect scores and notices."""
