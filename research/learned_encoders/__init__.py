"""Trained encoders: a metric after BLEURT, and LS_Score."""
