"""MARS within other libraries.

Each is imported only by the module of its name.
"""
