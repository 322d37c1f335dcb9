"""Options and errors of MARS in lm-evaluation-harness and lighteval; tests/test_recipes.py has their recipes."""

import importlib

import harnesses
import pytest

from mars_score.scorer import MarsScorer

MARS_TASK = "class: !function mars_score.integrations.lm_eval.MarsTask\n"


@pytest.fixture
def evaluated(tiny_mini, gpt2, tmp_path, monkeypatch):
    """The folder of the model that a harness evaluates in the current folder, an empty one."""
    monkeypatch.chdir(tmp_path)
    return harnesses.save_model(tmp_path / "model", *gpt2)


@pytest.fixture
def lm_eval():
    return pytest.importorskip("lm_eval")


class TestLmEval:
    @pytest.mark.parametrize("use_references", [True, False])
    def test_options(self, lm_eval, evaluated, use_references):
        options = f'context: "It is late. {{{{context}}}}", use_references: {str(use_references).lower()}'
        entries = f"[{{metric: mars, preset: mini, variant: fast, {options}}}, {{metric: exact_match}}]"
        results, samples = harnesses.run_lm_eval(evaluated, f"{MARS_TASK}metric_list: {entries}")
        expected = MarsScorer("mini", variant="fast").score(
            [sample["resps"][0][0] for sample in samples],
            [document["reference"] for document in harnesses.DOCUMENTS] if use_references else None,
            ["It is late. " + document["context"] for document in harnesses.DOCUMENTS],
        )
        assert results["mars,none"] == expected.score
        assert [sample["mars"]["score"] for sample in samples] == expected.scores
        assert results["exact_match,none"] == 0

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"context": None},
                r"the context \(context\) of document 3 of task answers must be a string, got None",
            ),
            (
                {"reference": ["a", " "]},
                "the target of document 3 of task answers holds a blank reference; fill it",
            ),
        ],
    )
    def test_a_bad_document_is_refused_before_generation(self, lm_eval, evaluated, monkeypatch, change, message):
        from lm_eval.models.huggingface import HFLM

        monkeypatch.setattr(HFLM, "generate_until", None)
        documents = [*harnesses.DOCUMENTS]
        documents[3] = {**documents[3], **change}
        with pytest.raises((TypeError, ValueError), match=message):
            harnesses.run_lm_eval(evaluated, MARS_TASK + "metric_list: [{metric: mars}]", documents)

    def test_predictions_alone(self, lm_eval, evaluated, nothing_loaded):
        task = MARS_TASK + "metric_list: [{metric: mars}]"
        results, samples = harnesses.run_lm_eval(evaluated, task, predict_only=True)
        assert "mars,none" not in results
        assert all(sample["resps"] and "mars" not in sample for sample in samples)

    @pytest.mark.parametrize(
        ("task", "message"),
        [
            (MARS_TASK + "metric_list: [{metric: mars, variation: plus}]", "variation"),
            (MARS_TASK + "metric_list: [{metric: exact_match}]", "once in metric_list, metric: mars"),
            (
                MARS_TASK + "metric_list: [{metric: mars}]\noutput_type: multiple_choice",
                "output_type: generate_until",
            ),
            ("metric_list: [{metric: mars}]", "needs in its task class: !function mars_score"),
        ],
    )
    def test_a_wrong_task(self, lm_eval, evaluated, task, message):
        importlib.import_module("mars_score.integrations.lm_eval")  # the last task does not
        with pytest.raises((TypeError, ValueError), match=message):
            harnesses.run_lm_eval(evaluated, task)


class TestLighteval:
    @pytest.fixture
    def metrics(self):
        pytest.importorskip("lighteval")
        from mars_score.integrations.lighteval import Metrics

        return Metrics

    @pytest.fixture
    def compute(self, metrics):
        """Scores documents, the keyword arguments of ``Doc``, whose candidates are "She walked."."""
        from lighteval.metrics import apply_metric
        from lighteval.models.model_output import ModelResponse
        from lighteval.tasks.requests import Doc

        def scores(documents, **options):
            docs = [
                Doc(query="", **document, id=str(9 - row), task_name="answers")
                for row, document in enumerate(documents)
            ]
            metric = metrics.mars(sample_params={"preset": "mini", **options})
            responses = [ModelResponse(text=["She walked."]) for _ in docs]
            return [row[metric.metric_name] for row in apply_metric(responses, docs, [metric])]

        return scores

    @pytest.mark.parametrize("use_references", [True, False])
    def test_options(self, compute, tiny_mini, use_references):
        rows = [(document["reference"], document["context"]) for document in harnesses.DOCUMENTS]
        documents = [
            {"choices": ["x", *texts], "gold_index": [*range(1, len(texts) + 1)], "specific": {"story": context}}
            for texts, context in rows
        ]
        references, contexts = zip(*rows, strict=True)
        expected = MarsScorer("mini", variant="fast").score(
            ["She walked."] * len(rows), references if use_references else None, contexts
        )
        found = compute(documents, variant="fast", context="story", use_references=use_references)
        assert found == expected.scores

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"specific": None},
                r"specific\['context'\] of document 8 of task answers must be a string, got None",
            ),
            (
                {"choices": []},
                r"choices\[gold_index\] of document 8 of task answers is an empty list; give at least one",
            ),
        ],
    )
    def test_a_bad_document_is_named(self, compute, nothing_loaded, change, message):
        document = {"choices": ["a"], "gold_index": 0, "specific": {"context": "b"}}
        with pytest.raises((TypeError, ValueError), match=message):
            compute([document, {**document, **change}])

    def test_a_wrong_option_is_refused_at_once(self, metrics):
        with pytest.raises(TypeError, match="variation"):
            metrics.mars(sample_params={"variation": "plus"})
        assert metrics.mars.value.metric_name == "mars"
        metrics.mars(sample_params={"variant": "plus"})
