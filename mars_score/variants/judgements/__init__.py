"""What can be said of each sentence of a candidate: contradicted, supported, unsupported; and by what.

:class:`mars_score.variants.judgements.nli_judge.NliJudge` has all rules of who is judged and what follows.
"""
