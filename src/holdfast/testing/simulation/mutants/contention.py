"""Bugs in leases by name and in idempotency keys."""
# ruff: noqa: ARG005  a planted function takes what the true one takes

from __future__ import annotations

from contextlib import ExitStack

from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyDone, KeyMismatch, KeyScope
from holdfast.store.sqlite import audit, keys
from holdfast.store.sqlite.connection import Db
from holdfast.testing.simulation.mutants.planting import mutant, replace, rewrite


@mutant("a lease for everyone")
def _a_lease_for_everyone(stack: ExitStack) -> None:
    """a lease by name is given before another's has ended"""
    rewrite(
        stack, ("SELECT owner, until FROM holdfast_lease", "SELECT owner, until - 100000 FROM holdfast_lease")
    )


@mutant("a key for everyone")
def _a_key_for_everyone(stack: ExitStack) -> None:
    """an idempotency key is given while another holds it, and finished with any token"""
    rewrite(
        stack,
        (
            "SELECT fingerprint, until, response FROM holdfast_key",
            "SELECT fingerprint, 0, response FROM holdfast_key",
        ),
        ("AND token = ? AND response IS NULL", "AND ? IS NOT NULL"),
    )


@mutant("a lease renewed by anyone")
def _a_lease_renewed_by_anyone(stack: ExitStack) -> None:
    """renewing a lease by name does not look at the token"""
    rewrite(
        stack,
        ("WHERE name = ? AND token = ? AND until > ?", "WHERE name = ? AND ? IS NOT NULL AND until > ?"),
    )


@mutant("a lease ended by anyone")
def _a_lease_ended_by_anyone(stack: ExitStack) -> None:
    """releasing a lease by name does not look at the token"""
    rewrite(
        stack,
        (
            "DELETE FROM holdfast_lease WHERE name = ? AND token = ?",
            "DELETE FROM holdfast_lease WHERE name = ? AND ? IS NOT NULL",
        ),
    )


@mutant("stolen without a word")
def _stolen_without_a_word(stack: ExitStack) -> None:
    """an operator's steal leaves no audit row"""
    replace(stack, audit, "write", lambda db, entry: None)


@mutant("a key finished by anyone")
def _a_key_finished_by_anyone(stack: ExitStack) -> None:
    """finishing a key does not look at the token"""
    rewrite(stack, ("AND token = ? AND response IS NULL", "AND ? IS NOT NULL AND response IS NULL"))


@mutant("keys are forgotten early")
def _keys_are_forgotten_early(stack: ExitStack) -> None:
    """prune drops answers that are still to be kept"""
    rewrite(stack, ("WHERE until <= iif(response IS NULL, ?, ?)", "WHERE iif(response IS NULL, ?, ?) > 0"))


@mutant("any request fits a key")
def _any_request_fits_a_key(stack: ExitStack) -> None:
    """a key answers whatever is asked under it, the same request or another"""
    original = keys.begin

    def begin(
        db: Db, scope: KeyScope, key: str, *, fingerprint: str, lease: float
    ) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
        known = db.value("SELECT fingerprint FROM holdfast_key WHERE key = ?", key)
        return original(db, scope, key, fingerprint=known or fingerprint, lease=lease)

    replace(stack, keys, "begin", begin)


@mutant("a lost key keeps its token")
def _a_lost_key_keeps_its_token(stack: ExitStack) -> None:
    """who takes a key over from a lost holder gets that one's token"""
    rewrite(
        stack,
        ("fingerprint = excluded.fingerprint, token = excluded.token", "fingerprint = excluded.fingerprint"),
    )


@mutant("an answer is kept too short")
def _an_answer_is_kept_too_short(stack: ExitStack) -> None:
    """a key forgets its answer after a tenth of the time"""
    original = keys.finish

    def finish(db: Db, claim: KeyClaim, response: str, *, keep: float) -> bool:
        return original(db, claim, response, keep=keep / 10)

    replace(stack, keys, "finish", finish)


@mutant("a lease again with its token")
def _a_lease_again_with_its_token(stack: ExitStack) -> None:
    """an owner that takes its own lease again keeps the token"""
    rewrite(
        stack,
        (
            "SET owner = excluded.owner, token = excluded.token,",
            "SET owner = excluded.owner, token = iif(owner = excluded.owner, token, excluded.token),",
        ),
    )
