"""Variants: what each formula asks of the models, and the scores and notices of rows that follow."""
