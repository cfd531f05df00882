"""Every option has an environment variable, and here is the scheme: the command line wins over it.

`HOLDFAST_<OPTION>` for options of all commands (`--url`: HOLDFAST_URL), `HOLDFAST_<COMMAND>_<OPTION>` for those of one
(`dead replay --rate`: HOLDFAST_DEAD_REPLAY_RATE). An empty variable counts as none. For options without a value,
1, true, yes and on mean that it is given; 0, false, no and off that it is not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

COMMON = ("--app", "--url", "--actor", "--json")
_SHARED = (*COMMON, "--log-format", "--log-level")  # the same variable for all commands that have it
_WITHOUT = ("--help", "--version")
_FLAGS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


class Given(str):
    """A text that came from the environment, and not from the command line."""

    __slots__ = ()


def bind(action: argparse.Action, command: str, environment: Mapping[str, str]) -> None:
    """Name the option's variable in its help, and take the variable's value as its default."""
    if action.help is argparse.SUPPRESS or (variable := variable_of(action, command)) is None:
        return  # an option that is hidden is for our own processes
    action.help = f"{action.help} [{variable}]"
    if action.default is argparse.SUPPRESS:  # a common option: the parser at the top reads it
        return
    if text := environment.get(variable):
        action.default, action.required = Given(text), False
        action.type = _reader(variable, action)


def variable_of(action: argparse.Action, command: str) -> str | None:
    """`command` as it is typed, such as `holdfast dead replay`."""
    option = next((name for name in action.option_strings if name.startswith("--")), None)
    if option is None or option in _WITHOUT:
        return None
    words = ["holdfast", *([] if option in _SHARED else command.split()[1:]), option.strip("-")]
    return "_".join(words).replace("-", "_").upper()


def _reader(variable: str, action: argparse.Action) -> Callable[[str], Any]:
    """Only of a common option it matters where it came from; what reads another's text may know plain strings alone."""
    plain = _as_it_is if set(COMMON).intersection(action.option_strings) else str
    kind: Any = _flag if action.nargs == 0 else action.type or plain
    choices = action.choices

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except (argparse.ArgumentTypeError, ValueError, TypeError) as error:
            if isinstance(text, Given):
                raise argparse.ArgumentTypeError(f"{variable} is {str(text)!r}: {error}") from None
            raise
        if choices is not None and value not in choices:
            raise argparse.ArgumentTypeError(f"{variable} is {str(text)!r}, not one of {', '.join(choices)}")
        return value

    return read


def _as_it_is(text: str) -> str:
    return text


def _flag(text: str) -> bool:
    if (known := _FLAGS.get(text.strip().lower())) is None:
        raise argparse.ArgumentTypeError(f"write one of {', '.join(_FLAGS)}")
    return known
