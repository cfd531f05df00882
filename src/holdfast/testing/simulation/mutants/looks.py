"""Bugs in looks at effects of which nobody knows: what is believed too early, for too much, and for too long."""
# ruff: noqa: ARG005  a planted function takes what the true one takes

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from holdfast.jobs import lookups
from holdfast.jobs.look import Answer
from holdfast.testing.simulation.mutants.planting import mutant, replace

of_looks = partial(mutant, kind="worker")


@of_looks("a look is believed at once")
def _a_look_is_believed_at_once(stack: ExitStack) -> None:
    """what a look does not find is taken for not done although it may still appear"""
    replace(stack, lookups, "_settles", lambda answer: 0.0)


@of_looks("a look that cannot tell says no")
def _a_look_that_cannot_tell_says_no(stack: ExitStack) -> None:
    """a lookup that failed, or cannot tell, is taken for one that has found nothing"""
    replace(stack, Answer, "is_told", property(lambda self: True))


@of_looks("looked up for ever")
def _looked_up_for_ever(stack: ExitStack) -> None:
    """the schedule of an effect has no end"""
    replace(stack, lookups, "_next", lambda answer: 1.0)
