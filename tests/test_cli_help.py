"""``--help`` fits a screen, ``--help-all`` has the rest."""

import os
import re
import shlex

import pytest

from mars_score.cli import main, make_parser

COMMANDS = ("score", "augment", "compare", "meta")


@pytest.fixture
def help_of(monkeypatch, capsys):
    def print_help(*argv, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(argv) == 0
        return capsys.readouterr().out

    return print_help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_screen(command, help_of):
    shown = help_of(command, "--help")
    assert len(shown.splitlines()) <= 24
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.startswith(f"usage: mars {command} FILE")
    examples = re.findall(rf"^  (mars {command} .*)$", shown, flags=re.MULTILINE)
    assert len(examples) == 2
    for example in examples:  # they can be parsed
        make_parser().parse_args(shlex.split(example)[1:])


@pytest.mark.parametrize("command", COMMANDS)
def test_help_all_has_the_rest(command, help_of):
    short, full = help_of(command, "--help"), help_of(command, "--help-all", columns=200)
    [count] = re.findall(rf"^mars {command} --help-all lists all (\d+) options\.$", short, flags=re.MULTILINE)
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", full, flags=re.MULTILINE)
    assert len(set(options)) == len(options) == int(count)
    assert set(re.findall(r"^  (--[\w-]+)", short, flags=re.MULTILINE)) < set(options)


def test_settings_that_a_command_does_not_use_are_not_listed(help_of):
    augment, score = help_of("augment", "--help-all"), help_of("score", "--help-all")
    for option in ("--matching", "--context-weight", "--encoder ", "--q "):
        assert option in score
        assert option not in augment
    assert "--language-model" in augment
    args = make_parser().parse_args(["augment", "a.jsonl", "--out", "b", "--q", ".5"])  # but taken: shared options
    assert args.q == 0.5


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_the_command_do_not_spin_unless_asked_to(given, expected, monkeypatch, capsys):
    monkeypatch.setenv("OMP_WAIT_POLICY", given or "")
    if given is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    assert main(["--version"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == expected
