"""Queue dead jobs again, and say of each what became of it."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor
from holdfast.runtime.cli.output import complain, document, say
from holdfast.runtime.cli.progress import Progress
from holdfast.store.records import Replayed
from holdfast.store.states import State

PAGE = 500


async def replay_listed(
    hf: Holdfast, ids: Sequence[str], options: Namespace, *, rate: float | None = None
) -> int:
    """The jobs of these ids; each gets a line."""
    answers = await _replay(hf, list(dict.fromkeys(ids)), options, rate)
    if not options.json:
        for answer in answers:
            await tell(hf, answer)
    return _end(answers, options)


async def replay_all(hf: Holdfast, options: Namespace) -> int:
    """All that are dead now and pass the filters, the oldest first."""
    ids = await _find_ids(hf, options)
    if not ids and not options.json:
        complain("No job is dead, or none passes the filters; nothing is replayed.")
    answers = await _replay(hf, ids, options, options.rate)
    if answers and not options.json:
        _summarise(answers)
    return _end(answers, options)


async def _find_ids(hf: Holdfast, options: Namespace) -> list[str]:
    """Page by page, so that only ids are kept; chosen before the first is queued, so that one which dies again is left."""
    ids: list[str] = []
    while True:
        page = await hf.store.jobs.find(
            state=State.DEAD,
            task=options.task,
            queue=options.queue,
            limit=PAGE,
            before=ids[-1] if ids else None,
        )
        ids += [record.id for record in page]
        if len(page) < PAGE:
            return ids[::-1]


async def _replay(hf: Holdfast, ids: Sequence[str], options: Namespace, rate: float | None) -> list[Replayed]:
    bar, done = Progress("replayed", len(ids) if len(ids) > 1 else 0), 0

    def told(number: int) -> None:
        nonlocal done
        done = number
        bar.at(number)

    try:
        with bar:
            return await hf.dead.replay(ids, actor=actor(options), rate=rate, told=told)
    except asyncio.CancelledError:
        complain(f"Queued again before it was stopped: {done:,} of {len(ids):,}. The rest is still dead.")
        raise


async def tell(hf: Holdfast, answer: Replayed) -> None:
    match answer.outcome:
        case "queued":
            say(f"{answer.job_id} is queued again.")
        case "unique_taken":
            complain(f"Job {answer.job_id} stays dead: another job that is not over has its unique key.")
        case "carries_saga":
            complain(
                f"Job {answer.job_id} carries a saga and stays dead: let that go on with `holdfast sagas retry`. "
                f"Which one, `holdfast sagas list --job {answer.job_id}` says."
            )
        case _:
            record = await hf.jobs.get(answer.job_id)
            state = "there is no such job" if record is None else f"it is {record.state}"
            complain(f"Job {answer.job_id} is not dead: {state}. Only dead jobs can be queued again.")


def _summarise(answers: Sequence[Replayed]) -> None:
    counts = Counter(answer.outcome for answer in answers)
    say(f"Queued again: {counts['queued']:,} of {len(answers):,}.")
    if counts["unique_taken"]:
        complain(
            f"Still dead, since other jobs that are not over have their unique keys: {counts['unique_taken']:,}."
        )
    if counts["carries_saga"]:
        complain(f"Still dead, since they carry sagas (`holdfast sagas list`): {counts['carries_saga']:,}.")
    if counts["not_dead"]:
        complain(f"Not dead any more, since someone else decided about them: {counts['not_dead']:,}.")


def _end(answers: Sequence[Replayed], options: Namespace) -> int:
    if options.json:
        document({"jobs": [{"id": answer.job_id, "outcome": answer.outcome} for answer in answers]})
    return DONE if answers and all(answer.outcome == "queued" for answer in answers) else NOT_AS_WISHED
