"""Meta-evaluation: how well metrics of generated text agree with human ratings."""
