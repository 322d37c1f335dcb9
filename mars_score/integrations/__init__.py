"""MARS within other libraries; each is imported only with the module that is named after it."""
