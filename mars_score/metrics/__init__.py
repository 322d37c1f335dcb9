"""The formulas of the variants."""
