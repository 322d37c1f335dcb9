"""``--help`` lists what a command takes, in groups, and nothing that it does not use."""

import os
import re
import shlex

import pytest

from mars_score.cli import main, make_parser
from mars_score.settings import SETTING_NAMES

UNUSED = {
    "augment": {"matching", "context_weight", "q", "repetition_penalty", "encoder", "entailment_model"},
    "train": {"learned"},
}


@pytest.mark.parametrize("command", ["score", "augment", "compare", "references", "meta", "train"])
def test_help_lists_options_and_settings_once_and_an_example(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown, flags=re.MULTILINE)
    assert len(set(options)) == len(options)
    settings = {name for name in SETTING_NAMES if f"--{name.replace('_', '-')}" in options}
    assert {"variant", "max_mask_ratio", "language_model"} <= settings
    assert UNUSED.get(command, set()).isdisjoint(settings)
    if command not in UNUSED:
        assert settings == set(SETTING_NAMES)
    assert re.search(r"^settings: masking:$", shown, flags=re.MULTILINE)
    assert ("reference_cosine" in shown) == (command == "meta")  # it names the metrics
    [example] = re.findall(r"^example: mars (.*)$", shown, flags=re.MULTILINE)
    assert make_parser().parse_args(shlex.split(example)).command == command


@pytest.mark.parametrize("policy", ["", "ACTIVE"])
def test_threads_of_the_command_do_not_spin_unless_asked_to(policy, monkeypatch, capsys):
    monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    if not policy:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    assert main(["--version"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == (policy or "PASSIVE")
