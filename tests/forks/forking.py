"""Programs that fork, each in a process of its own: `python forking.py SCENARIO URL` ends with the numbers that were acknowledged."""

import asyncio
import concurrent.futures
import gc
import multiprocessing
import os
import sys
import threading
import time
import traceback

import sqlalchemy as sa
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import Session

from holdfast import Holdfast, Job
from holdfast.kernel.errors import NotOpen, UnsupportedStore

hf = Holdfast(sys.argv[2])
PER_CHILD = 5


counted = hf.event("counted", int, unheard=True)


@hf.task
def count(n: int) -> int:
    return n


def say(line):
    os.write(1, f"{line}\n".encode())  # one write: lines of several processes do not mix


def put(*numbers):
    """Store a job for each number, and say so once it is acknowledged."""
    for n in numbers:
        count.enqueue_sync(n)
        say(f"stored {n}")


def part(number):
    put(*range(number * 100, number * 100 + PER_CHILD))
    return number


def forked(action):
    """Call it in a child, which ends as a program does, with all that Python does at its end. Returns its id."""
    if (child := os.fork()) != 0:
        return child
    action()
    sys.exit(0)


def ended(*children):
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0, status


def bare():
    put(1)
    children = [forked(lambda number=number: part(number)) for number in (1, 2)]
    put(2, 3)
    ended(*children)
    put(4)


def child_outlives_the_parent():
    """As a daemon does: the parent closes the store, or ends, while its child goes on."""
    put(1)
    reading, writing = os.pipe()

    def child():
        put(2)
        os.read(reading, 1)
        part(1)

    number = forked(child)
    time.sleep(0.5)
    hf.blocking.close()
    os.write(writing, b"x")
    ended(number)
    put(3)


def grandchildren():
    put(1)

    def child():
        put(2)
        ended(forked(lambda: put(3)))
        put(4)

    ended(forked(child))
    put(5)


def processes():
    put(1)
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=part, args=(number,)) for number in (1, 2)]
    for each in children:
        each.start()
    put(2)
    for each in children:
        each.join(30)
        assert each.exitcode == 0, each.exitcode
    put(3)


def pool():
    put(1)
    with multiprocessing.get_context("fork").Pool(2) as workers:
        assert workers.map(part, [1, 2, 3], chunksize=1) == [1, 2, 3]
    put(2)


def executor():
    put(1)
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=fork) as workers:
        assert [*workers.map(part, [1, 2, 3])] == [1, 2, 3]
    put(2)


def busy_threads():
    """Others are in the middle of `enqueue_sync`, and of the very first one, when the forks come."""
    over = threading.Event()

    def go_on(first):
        for n in range(first, first + 10_000):
            put(n)
            if over.is_set():
                return

    threads = [threading.Thread(target=go_on, args=(100_000 * each,)) for each in range(1, 5)]
    for each in threads:
        each.start()
    for number in range(1, 9):
        ended(forked(lambda number=number: part(number)))
        time.sleep(0.01)
    over.set()
    for each in threads:
        each.join(30)


def within_async():
    """The parent has it open on an event loop; its children are sync programs."""

    async def main():
        async with hf:
            await count.enqueue(1)
            say("stored 1")
            child = multiprocessing.get_context("fork").Process(target=part, args=(1,))
            child.start()
            await asyncio.to_thread(child.join, 30)
            assert child.exitcode == 0, child.exitcode
            await count.enqueue(2)
            say("stored 2")

    asyncio.run(main())


def async_child():
    """Both have event loops."""

    async def store(*numbers):
        async with hf:
            for n in numbers:
                await count.enqueue(n)
                say(f"stored {n}")

    put(1)
    child = forked(lambda: asyncio.run(store(2, 3)))
    put(4)
    ended(child)
    put(5)


def what_was_asked_before():
    """What the parent has in its hands, or in memory, is asked anew in the child: flags, logins, locks, guards."""

    def ask(is_on):
        hf.blocking.flags.set("new-prices", is_on)
        assert hf.blocking.flag("new-prices") is is_on
        assert hf.blocking.logins.list("ada") == []
        assert hf.blocking.guards.look("bank").held == 0
        assert bank.call_sync(int) == 0
        with hf.blocking.lock(f"of {os.getpid()}"):
            put(int(is_on))

    bank = hf.guard("bank", timeout=5)
    ask(True)
    for is_on in (False, True):
        ended(forked(lambda is_on=is_on: ask(is_on)))


# --- what a child cannot do ---


def refused(*actions, by):
    """Each of them raises this error at once."""
    for action in actions:
        began = time.monotonic()
        try:
            action()
        except by as error:
            assert "fork" in str(error), error
        else:
            raise AssertionError("it was not refused")
        assert time.monotonic() - began < 5


def async_verbs():
    """Those of the store that the parent has opened; in the child nothing is open."""

    async def main():
        async with hf:
            handle = await count.enqueue(1)

            def child():
                def run(verb):
                    return lambda: asyncio.run(verb())

                refused(
                    run(lambda: count.enqueue(2)), run(handle.status), run(lambda: hf.jobs.get(handle.id)),
                    run(lambda: hf.emit(counted, 1)), run(hf.transaction().__aenter__), by=NotOpen,
                )  # fmt: skip
                put(3)  # sync code opens it

            ended(beside(child))
            assert (await handle.status()) == "queued"

    asyncio.run(main())
    say("as expected")


def inside_a_transaction():
    """It stays the parent's, which commits it; on SQLite the child cannot use the file at all."""
    with hf.blocking.transaction() as tx:
        count.options(tx=tx).enqueue_sync(1)

        def child():
            by = UnsupportedStore if "sqlite" in sys.argv[2] else NotOpen
            refused(lambda: tx.execute("SELECT 1"), lambda: count.options(tx=tx).enqueue_sync(2), by=by)
            if by is NotOpen:
                put(3)
            else:
                refused(lambda: put(3), by=by)

        ended(forked(child))
        try:
            if (child := os.fork()) == 0:
                with hf.blocking.transaction():
                    pass
        except UnsupportedStore:
            assert "sqlite" in sys.argv[2]
        if child == 0:
            os._exit(0)
        ended(child)
        count.options(tx=tx).enqueue_sync(4)
    try:
        with hf.blocking.transaction():
            child = os.fork()
    except NotOpen as error:  # the child leaves the block of its parent
        assert "fork" in str(error)
        assert child == 0
        os._exit(0)
    assert child != 0
    ended(child)
    assert {record.args for record in asyncio.run(found())} >= {'{"n":1}', '{"n":4}'}
    say("as expected")


def inside_a_session():
    """It stays the parent's, whatever the child does: what it has written there and what comes after commit together."""
    insert = sa.text("INSERT INTO kept VALUES (1)")
    with hf.blocking.session() as session, session.begin():
        session.execute(sa.text("CREATE TABLE kept (n INTEGER)"))
    for in_child in (lambda _: None, hf_of, Session.execute, Session.commit, Session.rollback, Session.close):
        with hf.blocking.session() as session:
            session.execute(insert)
            count.options(tx=session).enqueue_sync(1)
            if (child := os.fork()) == 0:
                try:
                    in_child(session, *([insert] if in_child is Session.execute else []))
                except (StatementError, NotOpen, UnsupportedStore) as error:
                    assert "fork" in str(error), error
                    assert in_child not in (Session.rollback, Session.close)
                sys.exit(0)  # and so it leaves the block of its parent
            ended(child)
            session.execute(insert)
            session.commit()
    with hf.blocking.session() as session:
        assert session.scalar(sa.text("SELECT count(*) FROM kept")) == 12
    jobs = [record for record in asyncio.run(found()) if record.args == '{"n":1}']
    assert len(jobs) == 6, jobs
    say("as expected")


def hf_of(_):
    """The child opens its own; on SQLite it cannot."""
    try:
        put(2)
    except UnsupportedStore:
        assert "sqlite" in sys.argv[2]


async def found():
    async with hf:
        return await hf.store.jobs.find()


def beside(action):
    """The same where the stack below is the parent's business: a coroutine, or a thread that is not the main one."""
    if (child := os.fork()) != 0:
        return child
    try:
        asyncio._set_running_loop(None)
        action()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def inside_a_step():
    """A job belongs to the process that runs it."""

    @hf.task
    def work(job: Job) -> str:
        def child():
            refused(job.blocking.heartbeat, lambda: job.blocking.step("b", int), by=NotOpen)
            put(2)

        job.blocking.step("a", lambda: ended(beside(child)))
        ended(beside(child))
        return "done"

    async def main():
        async with hf, hf.worker():
            assert await (await work.enqueue()).result(20) == "done"

    asyncio.run(main())
    say("as expected")


def a_handle():
    """What was made in the parent is of use in the child."""
    handle = count.enqueue_sync(1)
    record = hf.blocking.result

    def child():
        try:
            record(handle, 0.1)
        except TimeoutError:
            put(2)

    ended(forked(child))
    say("as expected")


# --- what a child leaves alone ---


def connections():
    """The parent's are neither ended nor deafened by a child that ends as programs do."""

    def backend():
        with hf.blocking.transaction() as tx:
            return tx.fetch("SELECT pg_backend_pid()")

    before = backend()
    for action in (int, gc.collect, lambda: put(1)):
        ended(forked(action))
        assert backend() == before
    say("the same")


def orphan():
    """The parent is killed in the middle of a transaction, and its child lives on: the transaction ends all the same."""
    put(1)
    reading, writing = os.pipe()
    if (parent := os.fork()) == 0:
        with hf.blocking.transaction() as tx:
            tx.execute("SELECT pg_advisory_xact_lock(7)")
            if os.fork() == 0:
                os.write(writing, b"x")
                time.sleep(3)
                os._exit(0)
            time.sleep(60)
    os.read(reading, 1)
    os.kill(parent, 9)
    os.waitpid(parent, 0)
    began = time.monotonic()
    with hf.blocking.transaction() as tx:
        tx.execute("SELECT pg_advisory_xact_lock(7)")
    say("free" if time.monotonic() - began < 2 else "it waited for the child")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
