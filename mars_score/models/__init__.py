"""Find models by their names, load them, and run them."""
