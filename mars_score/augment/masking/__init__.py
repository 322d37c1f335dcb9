"""Which words of a reference are masked (section 2.1, Appendix A).

In the order that data flows: ``analysis`` (words and tags) -> ``idf``, ``context`` (what a word is worth and
costs) -> ``knapsack`` (which words to mask within a budget) -> ``templates`` -> ``template`` (what infilling
receives).
"""
