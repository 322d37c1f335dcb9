"""Five documents, and a tiny model that lm-evaluation-harness or lighteval runs on them (docs/frameworks.md)."""

from pathlib import Path

import pytest
import torch

from tests import jsonl

DOCUMENTS = [
    {"context": "The car broke down in town.", "reference": ["She took the bus to work.", "She walked."]},
    {"context": "It will rain before noon.", "reference": ["Take a coat with you."]},
    {"context": "The library was closed.", "reference": ["He read at home.", "He came back.", "Nobody came."]},
    {"context": "The mayor did not change her mind.", "reference": ["The road was built."]},
    {"context": "Everyone was excited.", "reference": ["They went to the theatre.", "The show began."]},
]
LM_EVAL_TASK = """
task: answers
dataset_path: json
dataset_kwargs:
  data_files:
    test: rows.jsonl
test_split: test
output_type: generate_until
doc_to_text: "{{context}}"
doc_to_target: reference
generation_kwargs:
  max_gen_toks: 12
"""
LIGHTEVAL_TASK = """
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc


def prompt(line, task_name):
    references = line["reference"]
    return Doc(line["context"], references, list(range(len(references))), specific={"context": line["context"]})


TASKS_TABLE = [
    LightevalTaskConfig(
        name="answers",
        prompt_function=prompt,
        hf_repo="data",
        hf_subset="default",
        evaluation_splits=["train"],
        generation_size=12,
        stop_sequence=["\\n\\n"],
        metrics=[mars, Metrics.exact_match],
    )
]
"""


def run_lm_eval(model, metric, documents=DOCUMENTS, *, task=LM_EVAL_TASK, **arguments):
    """The values of a ``task`` that the YAML ``metric`` completes, and its samples; uses the current folder."""
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.tasks import TaskManager

    jsonl.write(Path("rows.jsonl"), documents)
    Path("answers.yaml").write_text(task + metric, encoding="utf-8")
    tasks = TaskManager(include_path=".", include_defaults=False)
    options = {"model_args": {"pretrained": model}, "device": "cpu", "bootstrap_iters": 0, **arguments}
    results = lm_eval.simple_evaluate("hf", tasks=["answers"], task_manager=tasks, batch_size=2, **options)
    return results["results"]["answers"], results["samples"]["answers"]


@torch.enable_grad()  # to which lighteval changes it when it is imported
def run_lighteval(patch, model, metric):
    """The values of a task for which the Python ``metric`` makes ``mars``, and its details by document."""
    pytest.importorskip("lighteval")
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.models.transformers.transformers_model import TransformersModelConfig
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
    from lighteval.tasks.registry import Registry

    for name in ("_load_from_files", "_load_from_subdirs"):  # of lighteval's tasks one downloads a file
        patch.setattr(Registry, name, lambda *_: {})
    Path("data").mkdir()
    jsonl.write(Path("data/rows.jsonl"), DOCUMENTS)
    Path("answers.py").write_text(metric + LIGHTEVAL_TASK, encoding="utf-8")
    pipeline = Pipeline(
        "answers",
        PipelineParameters(ParallelismManager.ACCELERATE, custom_tasks_directory="answers.py"),
        EvaluationTracker(output_dir="results"),
        TransformersModelConfig(model_name=model, batch_size=2, cache_dir="cache"),
    )
    pipeline.evaluate()
    pipeline.save_and_push_results()
    return pipeline.get_results()["results"]["answers:0"], pipeline.get_details()["answers|0"]
