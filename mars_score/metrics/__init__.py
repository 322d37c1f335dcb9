"""Which words of a reference are masked (section 2.1, Appendix A): words and tags, their worth, templates."""
