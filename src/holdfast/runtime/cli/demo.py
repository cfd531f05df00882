"""`holdfast demo`: a shop whose workers are killed and frozen, and a count of what became of its orders."""

from __future__ import annotations

from argparse import Namespace

from holdfast.runtime.cli.parser import Commands


def add(commands: Commands) -> None:
    about = "see jobs survive a killed and a frozen worker"
    demo = commands.add_parser(
        "demo", help=about, description=f"{about.capitalize()}, on a SQLite file of its own."
    )
    demo.set_defaults(run=run)


def run(_: Namespace) -> int:
    # Only now: it is a program, which looks for its database, and no other command may fail for that.
    from holdfast.runtime.demo.__main__ import main  # noqa: PLC0415

    return main()
