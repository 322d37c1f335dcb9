"""Files of any length: read some rows at a time, scored by one or several workers, written in place when complete."""
