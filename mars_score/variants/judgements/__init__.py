"""Decide which sentences of a candidate are contradicted, supported or unsupported, and by which text.

:class:`mars_score.variants.judgements.nli_judge.NliJudge` has all rules.
"""
