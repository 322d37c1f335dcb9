"""MARS within other libraries; each is imported only by the module of its name."""
