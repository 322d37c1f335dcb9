"""Options and errors of MARS in lm-evaluation-harness and lighteval; tests/test_recipes.py has their recipes."""

import harnesses
import pytest

from mars_score.scorer import MarsScorer

COLUMNS = [[document[name] for document in harnesses.DOCUMENTS] for name in ("reference", "context")]
OF_MARS = "class: !function mars_score.integrations.lm_eval.MarsTask\n"
LM_EVAL = f"{OF_MARS}metric_list: [{{metric: mars, variant: fast}}]\n"
with_or_without_references = pytest.mark.parametrize("use_references", [True, False])


@with_or_without_references
def test_options_in_lm_eval(evaluated, use_references):
    options = f'context: "It is late. {{{{context}}}}", use_references: {str(use_references).lower()}'
    options += ", context_task: data"
    entries = f"[{{metric: mars, preset: mini, variant: fast, {options}}}, {{metric: exact_match}}]"
    results, samples = harnesses.run_lm_eval(evaluated, f"{OF_MARS}metric_list: {entries}")
    references, contexts = COLUMNS
    expected = MarsScorer("mini", variant="fast", task="data").score(
        [sample["resps"][0][0] for sample in samples],
        references if use_references else None,
        [f"It is late. {context}" for context in contexts],
    )
    assert results["mars,none"] == expected.score
    assert [sample["mars"]["score"] for sample in samples] == expected.scores
    assert results["exact_match,none"] == 0


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        (
            LM_EVAL,
            {"context": None},
            r"the context \(context\) of document 3 of task answers .*NoneType",
        ),
        (
            LM_EVAL,
            {"reference": ["a", " "]},
            "the target of document 3 of task answers .*blank",
        ),
        (OF_MARS + "metric_list: [{metric: mars, variation: plus}]", {}, "variation"),
        (OF_MARS + "metric_list: [{metric: mars, variant: fast, task: data}]", {}, "context_task"),
        (OF_MARS + "metric_list: [{metric: mars, variant: fast, context_task: story}]", {}, "task"),
        (OF_MARS + "metric_list: [{metric: mars, variant: paper, use_references: false}]", {}, "needs references"),
        (OF_MARS + "metric_list: [{metric: exact_match}]", {}, "once in metric_list, metric: mars"),
        (LM_EVAL + "output_type: multiple_choice", {}, "output_type: generate_until"),
    ],
)
def test_what_is_wrong_is_refused_before_lm_eval_generates(evaluated, monkeypatch, task, change, message):
    monkeypatch.setattr(pytest.importorskip("lm_eval.models.huggingface").HFLM, "generate_until", None)
    documents = [{**row, **change} if place == 3 else row for place, row in enumerate(harnesses.DOCUMENTS)]
    with pytest.raises((TypeError, ValueError), match=message):
        harnesses.run_lm_eval(evaluated, task, documents)


def test_a_task_of_another_class_is_told_which_it_needs(evaluated):
    pytest.importorskip("mars_score.integrations.lm_eval")  # which the task does not do itself
    with pytest.raises(ValueError, match="needs in its task class: !function mars_score"):
        harnesses.run_lm_eval(evaluated, LM_EVAL.removeprefix(OF_MARS))


def test_turns_are_a_dialogue_in_lm_eval(evaluated):
    documents = [{**row, "turns": row["context"].split(" ", 1)} for row in harnesses.DOCUMENTS]
    entry = "metric_list: [{metric: mars, preset: mini, variant: fast, context: turns}]"
    results, samples = harnesses.run_lm_eval(evaluated, OF_MARS + entry, documents)
    expected = MarsScorer("mini", variant="fast").score(
        [sample["resps"][0][0] for sample in samples], COLUMNS[0], [row["turns"] for row in documents]
    )
    assert results["mars,none"] == expected.score
    assert {sample["mars"]["context_task"] for sample in samples} == {"dialogue"}


def test_predictions_alone_in_lm_eval(evaluated, nothing_loaded):
    results, samples = harnesses.run_lm_eval(evaluated, LM_EVAL, predict_only=True)
    assert "mars,none" not in results
    assert all(sample["resps"] and "mars" not in sample for sample in samples)


def lighteval_scores(documents, **options):
    """Scores of documents, the keyword arguments of ``Doc``, whose candidates are "She walked."."""
    lighteval = pytest.importorskip("lighteval.metrics")
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    from mars_score.integrations.lighteval import Metrics

    metric = Metrics.mars(sample_params={"preset": "mini", "variant": "fast", **options})
    docs = [Doc("", **row, id=str(9 - place), task_name="answers") for place, row in enumerate(documents)]
    responses = [ModelResponse(text=["She walked."]) for _ in docs]
    return [row[metric.metric_name] for row in lighteval.apply_metric(responses, docs, [metric])]


@with_or_without_references
def test_options_in_lighteval(tiny_mini, use_references):
    references, contexts = COLUMNS
    documents = [
        {"choices": ["x", *texts], "gold_index": [*range(1, len(texts) + 1)], "specific": {"story": context}}
        for texts, context in zip(references, contexts, strict=True)
    ]
    columns = ["She walked."] * len(contexts), references if use_references else None, contexts
    for task in (None, "dialogue"):
        options = {"context": "story", "context_task": task, "use_references": use_references}
        scores = lighteval_scores(documents, **options)
        assert scores == MarsScorer("mini", variant="fast", task=task).score(*columns).scores


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"specific": None}, r"specific\['context'\] of document 8 of task answers .*NoneType"),
        ({"choices": []}, r"choices\[gold_index\] of document 8 of task answers .*empty list"),
    ],
)
def test_a_bad_document_of_lighteval_is_named(nothing_loaded, change, message):
    document = {"choices": ["a"], "gold_index": 0, "specific": {"context": "b"}}
    with pytest.raises((TypeError, ValueError), match=message):
        lighteval_scores([document, {**document, **change}])


def test_a_wrong_option_in_lighteval_is_refused_at_once():
    pytest.importorskip("lighteval")
    from mars_score.integrations.lighteval import Metrics

    for option, named in (("variation", "variation"), ("task", "context_task")):
        with pytest.raises(TypeError, match=named):
            Metrics.mars(sample_params={option: "plus"})
    assert Metrics.mars.value.metric_name == "mars"
    Metrics.mars(sample_params={"variant": "plus"})
