"""Rows for metrics beside MARS: one and several references, several sentences, a long context and none."""

from mars_score.rows import Row

REFERENCES = (
    "The baker opens her shop.",
    "The children walk along the river. They stop on the bridge!",
    "It will rain before noon",
)
ROWS = [
    Row("The baker opens a shop in the morning.", REFERENCES[:1], "The harbour wakes early."),
    Row("Children stop. Look at the boats on the river.", REFERENCES[1:], "The harbour wakes early."),
    Row("rain", REFERENCES, ""),
    Row("He forgot his ticket, and he would go back and find it.", REFERENCES[2:], "He was at the theatre. " * 20),
]
