"""Studies: how constants were chosen, what was tried, and the figures of the documentation."""

import os

os.environ.setdefault("MARS_DTYPE", "float32")  # so that figures do not depend on the machine
