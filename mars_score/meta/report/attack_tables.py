"""Tables of robustness (the paper's Table 4)."""

from __future__ import annotations

from mars_score.meta.evaluation import MetaEvaluation
from mars_score.meta.tables import Table, mean, number, signed

_WHAT = {
    "reorder": "Reorder: half of a candidate's tokens shuffled (from four tokens, never the candidate itself)",
    "retrieve": "Retrieve: a sentence of the context as the candidate (from three sentences, never the candidate)",
}


def attack_tables(found: MetaEvaluation) -> list[Table]:
    """For each attack the share of candidates above it, and what becomes of the correlation."""
    first = next(iter(found.sets.values()))
    tables = []
    for attack in first.scored.attacks:
        counts = "; ".join(
            f"{name} {len(one.scored.attacks[attack].indices)} ({one.scored.attacks[attack].skipped} skipped)"
            for name, one in found.sets.items()
        )
        what = f"{_WHAT.get(attack, attack)}. Items: {counts}."
        shares, changes = [], []
        for name, title in found.available():
            robust = [one.agreements[name].robustness[attack] for one in found.sets.values()]
            share = [one.share for one in robust]
            change = [one.after.value - one.before.value for one in robust]
            shares.append((title, *map(number, share), number(mean(share))))
            changes.append((title, *map(signed, change), signed(mean(change))))
        tables += [
            Table(
                f"Candidates scored above their own attack: {attack}",
                f"{what} Ties count as failures.",
                ("metric", *found.sets, "mean"),
                tuple(shares),
            ),
            Table(
                f"Change of Pearson's r under attack: {attack}",
                "Correlation of the attacks' scores with the ratings of the texts they come from, minus that of "
                "the candidates, over the same items: a metric that sees through the attack loses much.",
                ("metric", *found.sets, "mean"),
                tuple(changes),
            ),
        ]
    return tables
