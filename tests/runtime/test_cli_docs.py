"""docs/cli.md is true: its commands print what it says, and no command is missing there."""

import argparse

from holdfast.runtime.cli import parser
from holdfast.runtime.cli.parser import CODES
from holdfast.runtime.worker_process import EXIT_SECOND_SIGNAL, EXIT_STUCK
from tools.cli_examples import PAGE, rendered


def test_every_example_prints_what_the_page_says():
    page = PAGE.read_text()
    assert rendered(page) == page, "run `python -m tools.cli_examples`, and look at what changed"


def commands(above):
    for action in above._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield each
                yield from commands(each)


def test_every_command_is_on_the_page():
    page = PAGE.read_text()
    for command in commands(parser()):
        _, group, *verb = command.prog.split()
        [row] = [line for line in page.splitlines() if line.startswith(f"holdfast {group} ")][:1]
        assert all(word in row for word in verb), command.prog


def test_every_option_has_a_variable_in_its_help():
    for command in [parser(), *commands(parser())]:
        for action in command._actions:
            shown = action.option_strings and action.help is not argparse.SUPPRESS
            if shown and action.dest not in ("help", "version"):
                assert "[HOLDFAST_" in action.help, f"{command.prog} {action.option_strings}"


def test_every_exit_code_is_on_the_page_and_in_the_help():
    for code in (0, 1, 2, 3, EXIT_STUCK, EXIT_SECOND_SIGNAL):
        assert f"\n| {code} |" in PAGE.read_text()
        assert f" {code} " in CODES
