"""Exceptions of their own kind; plain bad input raises ValueError or TypeError."""


class ModelUnavailableError(OSError):
    """A model could not be loaded: the Hub is out of reach, or a wheel or an extra is missing."""


class UnsupportedModelError(ValueError):
    """A model loaded but cannot do what MARS asks of it (see the message)."""


class MarsWarning(UserWarning):
    """Something was done to some of the inputs (blank candidates, shortened texts); one a kind and call."""
