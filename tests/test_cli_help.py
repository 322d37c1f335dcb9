"""``--help`` lists what a command takes, in groups, and nothing that it does not use."""

import os
import re
import shlex

import pytest

from mars_score.cli import main, make_parser
from mars_score.settings import SETTING_NAMES

COMMANDS = ("score", "augment", "compare", "references", "meta", "train")
UNUSED = {
    "augment": {"matching", "context_weight", "q", "repetition_penalty", "encoder", "entailment_model"},
    "train": {"learned"},
}


@pytest.fixture
def help_of(monkeypatch, capsys):
    def print_help(command):
        monkeypatch.setenv("COLUMNS", "200")
        assert main([command, "--help"]) == 0
        return capsys.readouterr().out

    return print_help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_the_options_and_settings_once(command, help_of):
    shown = help_of(command)
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown, flags=re.MULTILINE)
    assert len(set(options)) == len(options)
    settings = {name for name in SETTING_NAMES if f"--{name.replace('_', '-')}" in options}
    assert {"variant", "max_mask_ratio", "language_model"} <= settings
    assert UNUSED.get(command, set()).isdisjoint(settings)
    if command not in UNUSED:
        assert settings == set(SETTING_NAMES)
    assert re.search(r"^settings: masking:$", shown, flags=re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_can_be_parsed(command, help_of):
    [example] = re.findall(r"^example: mars (.*)$", help_of(command), flags=re.MULTILINE)
    args = make_parser().parse_args(shlex.split(example))
    assert args.command == command


def test_a_setting_that_the_command_does_not_use_is_refused(capsys):
    assert main(["augment", "a.jsonl", "--out", "b.jsonl", "--q", ".5"]) == 2
    assert "unrecognized arguments: --q .5" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_the_command_do_not_spin_unless_asked_to(given, expected, monkeypatch, capsys):
    monkeypatch.setenv("OMP_WAIT_POLICY", given or "")
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    assert main(["--version"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == expected
