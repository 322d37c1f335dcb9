"""The ladders of research/ladders.py with the small real models: the tables are reported, not asserted."""

import pytest

from mars_score import MarsScorer
from research.ladders import KINDS, in_order, score_ladders, to_markdown


@pytest.mark.slow
@pytest.mark.usefixtures("shared_store")
@pytest.mark.parametrize("variant", ["v3", "v2"])
def test_the_reference_is_above_a_text_off_topic(variant, record_property):
    scores = score_ladders(MarsScorer("mini", variant=variant))
    table = to_markdown({variant: scores})
    print(table)
    record_property("table", table)
    assert len(scores) == 10
    assert in_order(scores, "reference", "off_topic") == 1.0


def test_shares_and_means():
    ladder = {kind: 1.0 - place / 10 for place, kind in enumerate(KINDS)}
    scores = [ladder, {**ladder, "paraphrase": 0.3}]
    assert in_order(scores, "reference", "paraphrase") == 1.0
    assert in_order(scores, "paraphrase", "negated") == 0.5
    text = to_markdown({"v3": scores, "v2": [ladder]})
    assert "| paraphrase | 0.600 | 0.900 |" in text
    assert "| paraphrase > negated | 50% | 100% |" in text
