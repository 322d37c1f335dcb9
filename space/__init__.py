"""The Space: MARS in a browser. ``app.py`` at the top of the repository lays these parts out."""
