"""Why a score is what it is: the words that match, the nearest parts of context and samples, the terms' points."""
