"""MARS as a module of Hugging Face evaluate. The formula is in mars_score/metrics/plus.py.

evaluate reads the import lines of this file by a regular expression. The comment behind an import of mars_score
must be the name of the package for pip, and nothing else.
"""

from typing import Any

import datasets
import evaluate

import mars_score  # From: mars-score
from mars_score.integrations import evaluate_rows  # From: mars-score

_CITATION = """\
@inproceedings{liu-etal-2021-language,
    title = "Language Model Augmented Relevance Score",
    author = "Liu, Ruibo and Wei, Jason and Vosoughi, Soroush",
    booktitle = "Proceedings of ACL-IJCNLP 2021 (Volume 1: Long Papers)",
    year = "2021",
    doi = "10.18653/v1/2021.acl-long.521",
    pages = "6677--6690",
}
"""

_DESCRIPTION = """\
MARS (Language Model Augmented Relevance Score) scores generated text against human references AND the context
that it was generated from. By default it is the metric of the paper: a language model fills in masked words of the
references given the context, and the score is the weighted similarity of a candidate with these augmented
references. Variant "plus" adds up the similarity with the references and with the context, how likely a language
model finds the candidate, and what it repeats; "fast" is the same without a language model.
"""

_KWARGS_DESCRIPTION = """
Scores candidates given references and contexts.

Args:
    predictions (`list` of `str`): candidates, one per row. A blank one scores 0.0.
    references (`list` of `str` or of `list` of `str`): one or several human references per row. None: variants
        `"plus"` and `"fast"` score all candidates by their contexts alone.
    contexts (`list`): what the text was generated from, one per row: a string is a text, such as a document or a
        question; a list of strings or of chat messages is a dialogue; `{"passages": [...]}`, optionally with a
        `"question"`, are retrieved passages; any other `dict` is a record. May be omitted with
        `use_context=False`.
    samples (`list` of `str` or of `list` of `str`): texts that other systems, such as a good language model,
        wrote for the context, for variants `"plus"` and `"fast"`; an empty list for a row without any. May be
        omitted.
    tasks (`str` or `list` of `str`): what the contexts are, for all rows or per row: `"text"`, `"summary"` (the
        candidate should follow from the context), `"dialogue"` (one turn per line) or `"data"`. May be omitted:
        the type of a context then implies its task.
    detailed (`bool`): also return the scores of the rows, their aspects and percentiles, the signature and the
        augmented references.
    explain (`bool`): also return why each score is what it is.
    **settings: settings and arguments of `mars_score.MarsScorer`, for one call, or at `evaluate.load` for
        all calls: `preset` (`"mini"`, `"medium"`, `"base"`, `"paper"` or `"multilingual"`: which models),
        `variant` (`"paper"`, `"plus"` or `"fast"`; also the second argument of `evaluate.load`), `language`,
        `task`, `use_context`, `device`, `batch_size`, `store` and others. Unknown ones are refused.

Returns:
    mars (`float`): mean score of the rows, mostly in [0, 1]; an unlikely or repetitive text may score below 0.
    scores (`list` of `float`): score of each row; with `detailed=True`.
    signature (`str`): all that the scores depend on besides the texts; with `detailed=True`.
    aspects (`list` of `dict`): for each row `reference`, `context`, `fluency`, `repetition` and `supported`, in
        [0, 1], or None where the score does not compute it; with `detailed=True`.
    contradicted (`list` of `list` of `dict`): for each row the sentences that its reference, or the context of a
        summary, contradicts: `sentence`, `probability`, `premise`, `source`; with `detailed=True`.
    supported (`list` of `float`): for each summary the mean probability that the context says its sentences, 0 for
        a contradicted one, or None where nothing is known; with `detailed=True`.
    unsupported (`list` of `list` of `dict`): for each summary the sentences that the context does not say, as
        dicts of the same form; none where that is not reliable; with `detailed=True`.
    faithfulness (`float`): mean of `supported` over the summaries, or None without any; with `detailed=True`.
    percentiles (`list` of `dict`): for each row where its score stands among rated candidates (`rank`, of 100) and
        how people rated those there (`rating`, from `low` to `high`), or None where that is not known; with
        `detailed=True`.
    augmented_references (`list` of `list` of `str`): the references of each row and their augmentations, without
        repetitions; none where the candidate is blank; with `detailed=True`.
    explanations (`list` of `dict`): for each row what each term gave, the words of each reference with the
        candidate's words that they match, the nearest sample and sentence of the context; with `explain=True`.

Examples:

    >>> import evaluate
    >>> mars = evaluate.load("mars", "plus", preset="mini")
    >>> results = mars.compute(
    ...     predictions=["She took the bus to work until it was fixed.", "The cat slept on the sofa."],
    ...     references=["She went to work by bus.", "She went to work by bus."],
    ...     contexts=["Jane's car broke down on Monday.", "Jane's car broke down on Monday."],
    ...     detailed=True,
    ... )
    >>> results["scores"][0] > results["scores"][1]
    True
    >>> results["contradicted"], results["supported"]
    ([[], []], [None, None])
    >>> mars.add(prediction="He is happy.", reference="He feels happy.", context="How is Tom today?")
    >>> list(mars.compute())
    ['mars']
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Mars(evaluate_rows.RowMetric):
    """MARS as a metric of Hugging Face evaluate, whose base class checks and keeps the rows."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": text, "references": datasets.Sequence(text), "contexts": text}
            ),
            reference_urls=["https://aclanthology.org/2021.acl-long.521"],
            license="Apache-2.0",
        )

    def _compute(self, predictions: Any, references: Any, contexts: Any) -> dict[str, Any]:
        """Score rows as evaluate's own ``compute`` calls it."""
        scorer = self.make_scorer()
        return self._result(scorer.score_rows(scorer.check_rows(predictions, references, contexts)))

    def _result(self, result: mars_score.MarsResult, *, detailed: bool = False) -> dict[str, Any]:
        values: dict[str, Any] = {"mars": result.score}
        if detailed:
            values["scores"] = result.scores
            values["signature"] = str(result.signature)
            values["aspects"] = [score.aspects._asdict() for score in result.row_scores]
            rows = [score.found() for score in result.row_scores]
            values |= {name: [row[name] for row in rows] for name in ("contradicted", "supported", "unsupported")}
            values["faithfulness"] = result.faithfulness
            values["percentiles"] = [percentile and percentile._asdict() for percentile in result.percentiles]
            values["augmented_references"] = [list(score.reference_texts) for score in result.row_scores]
        if result.explanations:
            values["explanations"] = [explanation.to_dict() for explanation in result.explanations]
        return values
