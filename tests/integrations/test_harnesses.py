"""Options and errors of MARS in evaluation frameworks; tests/docs/test_recipes.py has their recipes."""

import asyncio
import subprocess
import sys
from types import SimpleNamespace

import pytest

import mars_score
from mars_score.integrations.harness_options import PlaceInDocuments, read_options
from mars_score.scorer import MarsScorer
from tests.integrations import harnesses

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
        (LM_EVAL, {"context": None}, r"document 3 of task answers has no 'context'; set `context:`"),
        (LM_EVAL, {"reference": ["a", " "]}, "the target of document 3 of task answers .*blank"),
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


def test_templates_in_lm_eval_may_have_any_braces(evaluated):
    """Also where a document is refused by its name."""
    template = "{% for turn in turns %}{{turn}} {% endfor %}{{missing}}"
    documents = [{**row, "turns": row["context"].split(" ", 1)} for row in harnesses.DOCUMENTS]
    entry = f"metric_list: [{{metric: mars, variant: fast, context: '{template}'}}]"
    _, samples = harnesses.run_lm_eval(evaluated, OF_MARS + entry, documents)
    assert [" ".join(sample["mars"]["context"].split()) for sample in samples] == COLUMNS[1]


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
        ({"specific": None}, r"`specific` of document 8 of task answers has no 'context'; set `context:`"),
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


# MLflow, Inspect, Langfuse and promptfoo judge row by row.

STORY = {"story": "The car broke down in town.", "context": "not this one"}


def by_mlflow(output, reference, fields, **settings):
    pytest.importorskip("mlflow")
    from mars_score.integrations.mlflow import mars_scorer

    expectations = {"expected_response": reference} if reference else None
    feedback = mars_scorer(**settings)(inputs=fields, outputs=output, expectations=expectations)
    return feedback.value, feedback.rationale


def by_inspect(output, reference, fields, **settings):
    pytest.importorskip("inspect_ai")
    from inspect_ai.scorer import Target

    from mars_score.integrations.inspect_ai import mars

    state = SimpleNamespace(output=SimpleNamespace(completion=output), metadata=fields, sample_id=1)
    score = asyncio.run(mars(**settings)(state, Target(reference or [])))
    return score.value, score.explanation


def by_langfuse(output, reference, fields, **settings):
    pytest.importorskip("langfuse")
    from mars_score.integrations.langfuse import mars_evaluator

    evaluation = mars_evaluator(**settings)(input="", output=output, expected_output=reference, metadata=fields)
    return evaluation.value, evaluation.comment


def by_promptfoo(output, reference, fields, **settings):
    from mars_score.integrations.promptfoo import get_assert

    graded = get_assert(output, {"vars": {"reference": reference, **fields}, "config": settings})
    return graded["score"], graded["reason"]


of_each_framework = pytest.mark.parametrize("judge", [by_mlflow, by_inspect, by_langfuse, by_promptfoo])


@of_each_framework
@with_or_without_references
def test_options_where_rows_are_judged(tiny_mini, judge, use_references):
    settings = {"preset": "mini", "variant": "fast"}
    found = judge("She walked.", "She ran.", STORY, context="story", use_references=use_references, **settings)
    reference = "She ran." if use_references else None
    expected = mars_score.judge("She walked.", reference, STORY["story"], **settings)
    assert found == (expected["score"], expected["reason"])


@of_each_framework
@pytest.mark.parametrize(
    ("reference", "fields", "settings", "message"),
    [
        ("a", {"story": "b"}, {}, "has no 'context'; set `context:`"),
        ("a", {}, {"context": "story"}, "has no 'story'; set `context:`"),
        (None, {"context": "b"}, {}, "there is no reference"),
        ("a", {"context": "b"}, {"variation": "plus"}, "variation"),
        ("a", {"context": "b"}, {"task": "data"}, "context_task"),
    ],
)
def test_what_is_missing_or_unknown_is_named_where_rows_are_judged(
    nothing_loaded, judge, reference, fields, settings, message
):
    with pytest.raises((TypeError, ValueError), match=message):
        judge("a", reference, fields, preset="mini", **settings)


@of_each_framework
def test_without_contexts_where_rows_are_judged(tiny_mini, judge):
    settings = {"preset": "mini", "variant": "fast", "use_context": False}
    assert judge("a b", "a c", {}, **settings)[0] == mars_score.judge("a b", "a c", **settings)["score"]


@pytest.mark.parametrize(("threshold", "passes"), [(None, True), (-1, True), (1.1, False)])
def test_what_promptfoo_is_returned(tiny_mini, threshold, passes):
    """The types that it documents; variables may have other names."""
    from mars_score.integrations.promptfoo import get_assert

    config = {"preset": "mini", "variant": "fast", "reference": "answer"} | (
        {} if threshold is None else {"threshold": threshold}
    )
    graded = get_assert("a b", {"vars": {"answer": "a c", "context": "d"}, "config": config})
    assert graded["pass"] is passes
    assert (type(graded["score"]), type(graded["reason"])) == (float, str)
    assert sum(graded["named_scores"].values()) == pytest.approx(graded["score"])


def test_mlflow_is_told_what_passes(tiny_mini):
    pytest.importorskip("mlflow")
    from mars_score.integrations.mlflow import mars_scorer

    scorer = mars_scorer("ours", threshold=-1, preset="mini", variant="fast")
    row = {"inputs": {"context": "d"}, "outputs": "a b", "expectations": {"expected_response": "a c"}}
    feedback = scorer(**row)
    assert (feedback.name, feedback.metadata["passed"]) == ("ours", "true")
    assert all(type(value) is str for value in feedback.metadata.values())


def test_inspect_finds_the_scorer_by_its_entry_point(tmp_path, monkeypatch):
    """In another folder: in a checkout Inspect sees no installed package."""
    pytest.importorskip("inspect_ai")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    code = (
        "from inspect_ai._util import entrypoints, registry; entrypoints.ensure_entry_points('mars_score'); "
        "print(registry.registry_lookup('scorer', 'mars_score/mars'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "function mars" in done.stdout


@pytest.mark.parametrize("name", ["{{question}}", "{}", "{0.x}", "a}b{", "%s"])
def test_names_of_fields_and_tasks_may_have_braces(name):
    place = PlaceInDocuments(names={"contexts": f"the context ({name})"}, documents=[f"document 3 of task {name}"])
    with pytest.raises(TypeError) as error:
        read_options({"variant": "fast"}).check(["a"], [5], place)
    assert str(error.value).startswith(f"the context ({name}) of document 3 of task {name} must be a string")
