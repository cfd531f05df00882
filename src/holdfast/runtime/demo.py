"""A claim fenced off after a simulated death, on a real SQLite file: `make demo`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from holdfast.kernel.clock import sleep
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done
from holdfast.runtime.app import Holdfast
from holdfast.store.records import Claim, Finish, NewJob

LEASE = 1.5  # seconds; 30 in production


async def tell(folder: Path) -> bool:
    """Returns whether every promise in the story was kept."""
    url = f"sqlite:///{folder / 'demo.db'}"
    async with Holdfast(url) as alice, Holdfast(url) as bob:
        job_id = await _enqueue_twice(alice)
        old = await _claim(
            alice, "alice", f"holds the job for {LEASE} s, then stops answering (a simulated death)"
        )
        fenced = await _wait_for_rescue(bob)
        new = await _claim_again(bob)
        late = await _finish(alice, old, "alice", "wakes up and reports success")
        done = await _finish(bob, new, "bob", "reports success")
        record = await bob.jobs.get(job_id)
    kept = fenced and not late and done and record is not None and record.state == "succeeded"
    kept = kept and record is not None and record.token == new.token
    _say(
        "audit",
        f"1 job enqueued, 1 succeeded, by token {record.token if record else '?'}: lost 0, done twice 0",
    )
    return kept


async def _enqueue_twice(hf: Holdfast) -> str:
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    committed = NewJob(id=new_id(), task="ship", args='{"order": 1}')
    async with hf.transaction() as tx:
        await tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)
        await hf.store.jobs.enqueue([committed], tx=tx)
    _say("caller", "order 1 and its job are committed together")
    ghost = NewJob(id=new_id(), task="ship", args='{"order": 2}')
    try:
        async with hf.transaction() as tx:
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", 2)
            await hf.store.jobs.enqueue([ghost], tx=tx)
            raise RuntimeError("the card was declined")  # noqa: TRY301
    except RuntimeError as error:
        there = await hf.jobs.get(ghost.id)
        _say(
            "caller",
            f"order 2 is rolled back ({error}); its job {'is there: WRONG' if there else 'is not there'}",
        )
    return committed.id


async def _claim(hf: Holdfast, worker: str, then: str) -> Claim:
    [claim] = await hf.store.claims.claim({"default": 1}, lease=LEASE, worker=worker)
    _say(worker, f"claims the job with token {claim.token}, attempt {claim.attempt}; {then}")
    return claim


async def _wait_for_rescue(hf: Holdfast) -> bool:
    early = await hf.store.claims.rescue()
    _say("bob", f"looks for lost jobs at once: {len(early)} (its lease has not ended)")
    while not (rescued := await hf.store.claims.rescue()):
        await sleep(0.05)
    _say(
        "bob", f"the lease has ended: {len(rescued)} rescued, {rescued[0].interruptions} interruption charged"
    )
    return not early


async def _claim_again(hf: Holdfast) -> Claim:
    claim = await hf.store.claims.claim_suspect(["default"], lease=LEASE, worker="bob")
    assert claim is not None
    _say("bob", f"claims it, alone, with token {claim.token}, attempt {claim.attempt}")
    return claim


async def _finish(hf: Holdfast, claim: Claim, worker: str, doing: str) -> bool:
    [accepted] = await hf.store.claims.finish([Finish(claim, Done(f'"shipped by {worker}"'))])
    _say(
        worker, f"{doing} with token {claim.token}: {'accepted' if accepted else 'REFUSED, the token is old'}"
    )
    return accepted


def _say(who: str, what: str) -> None:
    print(f"  {who:<7} {what}", flush=True)  # noqa: T201


def main() -> int:
    print("One job, two workers, one of them dies:\n")  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        kept = asyncio.run(tell(Path(folder)))
    print("\nEvery promise was kept." if kept else "\nA promise was broken.")  # noqa: T201
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
