"""Files of any length: read some rows at a time, scored by workers, moved into their place when complete."""
