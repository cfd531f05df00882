"""Bugs in what people and workers ask for: pause, cancel, later, keep, epoch, a decision."""
# ruff: noqa: ARG001, ARG005  a planted function takes what the true one takes

from __future__ import annotations

from contextlib import ExitStack

import apsw
from msgspec import json

from holdfast.kernel.outcomes import Outcome, Unknown
from holdfast.store import story
from holdfast.store.records import Claim
from holdfast.store.sqlite import claims, finishes, history, holds, store
from holdfast.store.sqlite.connection import Db
from holdfast.testing.simulation.mutants.planting import force, mutant, replace, rewrite


@mutant("claims from a paused queue")
def _claims_from_a_paused_queue(stack: ExitStack) -> None:
    """claim does not look whether the queue is paused"""
    replace(stack, claims, "_paused", lambda db, queue: False)


@mutant("cancel only says so")
def _cancel_only_says_so(stack: ExitStack) -> None:
    """a running job is not asked to stop, and cancel says that it was"""
    rewrite(stack, ("SET stop = ? WHERE seq = ?", "SET stop = NULL WHERE ? IS NULL AND seq = ?"))


@mutant("renew does not hand it on")
def _renew_does_not_hand_it_on(stack: ExitStack) -> None:
    """who renews is not told that someone asked to stop"""
    rewrite(stack, ("RETURNING stop", "RETURNING NULL"))


@mutant("put back although asked to stop")
def _put_back_although_asked(stack: ExitStack) -> None:
    """a job that was asked to stop is queued again"""
    rewrite(stack, ("SELECT r.stop FROM holdfast_running", "SELECT NULL FROM holdfast_running"))


@mutant("later is now")
def _later_is_now(stack: ExitStack) -> None:
    """retry and snooze come back at once"""
    force(stack, finishes, "put_back", after=0.0)


@mutant("forgotten too early")
def _forgotten_too_early(stack: ExitStack) -> None:
    """prune keeps what is over for a third of the time"""
    original = history.old

    def old(db: Db, *, keep: float, after: int) -> list[int]:
        return original(db, keep=keep / 3, after=after)

    replace(stack, history, "old", old)


@mutant("prune always fails")
def _prune_always_fails(stack: ExitStack) -> None:
    """the store says that its disk is full, long after it is not"""

    def forget(db: Db, *, jobs: list[int]) -> int:
        raise apsw.FullError("database or disk is full")

    replace(stack, history, "forget", forget)


@mutant("the epoch is only told")
def _the_epoch_is_only_told(stack: ExitStack) -> None:
    """raising the epoch answers with the next one, and tokens go on in the old one"""

    def raise_epoch(db: Db) -> int:
        epoch: int = db.value("SELECT (value >> 40) + 1 FROM holdfast_counter WHERE name = 'token'")
        return epoch

    replace(stack, store, "_raise_epoch", raise_epoch)


@mutant("unknown is tried again")
def _unknown_is_tried_again(stack: ExitStack) -> None:
    """an outcome that nobody knows is stored as a retry"""
    original = finishes._end  # noqa: SLF001  the true one

    def end(db: Db, claim: Claim, outcome: Outcome) -> bool:
        return (
            finishes.put_back(db, claim, None)
            if isinstance(outcome, Unknown)
            else original(db, claim, outcome)
        )

    replace(stack, finishes, "_end", end)


@mutant("a story that loses an attempt")
def _a_story_that_loses_an_attempt(stack: ExitStack) -> None:
    """what became of a claim takes the place of what became of the one before"""
    original = story.tell

    def tell(text: str | None, entry: story.Entry) -> str:
        entries = story.entries_of(text)
        kept = json.encode(entries[:-1]).decode() if entries and entry.outcome == "failed" else text
        return original(kept, entry)

    replace(stack, finishes, "tell", tell)


@mutant("repair decides")
def _repair_decides(stack: ExitStack) -> None:
    """upkeep queues again what waits for a decision"""
    original = holds.repair

    def repair(db: Db, *, limit: int) -> int:
        db.run(
            """INSERT INTO holdfast_queued (seq, rank, priority, queue, attempt, token, run_at)
            SELECT seq, 0, j.priority, j.queue, p.attempt, p.token, ? FROM holdfast_parked AS p JOIN holdfast_job AS j
            USING (seq) WHERE state = 'unknown'""",
            db.now,
        )
        db.run("DELETE FROM holdfast_parked WHERE state = 'unknown'")
        return original(db, limit=limit)

    replace(stack, holds, "repair", repair)
