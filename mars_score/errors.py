"""Exceptions and warnings; bad input raises ValueError or TypeError."""


class ModelUnavailableError(OSError):
    """A model could not be loaded: the Hub is out of reach, or a wheel or an extra is missing."""


class UnsupportedModelError(ValueError):
    """A model was loaded but lacks something that MARS needs (see the message)."""


class MarsWarning(UserWarning):
    """Some rows were treated in a special way (blank, shortened); one warning per kind and call."""
