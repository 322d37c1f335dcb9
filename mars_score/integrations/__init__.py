"""MARS within other libraries. Each module imports the library of its name."""
