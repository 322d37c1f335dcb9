"""The Space: MARS in a browser. ``app.py`` starts it from a checkout."""
