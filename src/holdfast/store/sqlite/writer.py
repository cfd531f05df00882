"""Does all writing of this process on one thread: many callers to a commit, and callers' own transactions in between."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import apsw

from holdfast.kernel.clock import monotonic
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errands import whoever
from holdfast.kernel.errors import CommitUnknown, HoldfastError, NotOpen, TransactionEnded
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import Reply, deliver, mailbox
from holdfast.kernel.world import Pause, Take
from holdfast.store.blocks import inside
from holdfast.store.sqlite.connection import Db, explain
from holdfast.store.sqlite.meanings import meaning
from holdfast.store.sqlite.refusals import Watch
from holdfast.store.sqlite.served import LOCK_WAIT, Served, Stop, Work, answer_all, explained
from holdfast.store.standing import Standing

T = TypeVar("T")
Waits = Generator[Take[Any] | Pause, Any, T]

TRANSACTION_LIMIT = 5.0  # seconds: below a third of the lease, so that renewals behind it are not late
GROUP_LIMIT = 500  # pieces of work in one commit
_STEPS_BETWEEN_LOOKS = 20_000  # of SQLite's machine, between two looks at the clock


class Session:
    """A caller's own transaction: it holds the write lock from its first piece of work until its last."""

    def __init__(self, begun: Reply[None], owner: object) -> None:
        self.box = mailbox()
        self.begun = begun
        self.process = os.getpid()
        self.owner: object | None = owner  # until it leaves the block
        self.ended: str | None = None  # why no more work is taken
        self.answering: Work[Any] | End | None = None  # what the thread has taken last, and answers
        self.standing = Standing()


@dataclass(frozen=True, slots=True)
class End:
    """The last piece of work in a session."""

    reply: Reply[None]
    commit: bool
    last: Callable[[Db], None] | None = None  # before the commit


class Writer(Served):
    name = "holdfast-writer"
    _session_open: Session | None = None
    _cutoff = float("inf")
    _watch: Watch | None = None
    _broken = False  # the disk failed during COMMIT: the next transaction begins on a new connection

    def __init__(self, opened: Callable[[], Db]) -> None:
        super().__init__(opened)
        self._works: list[Work[Any]] = []
        self._sessions: list[Session] = []

    def ask_session(self, reply: type[Reply[Any]] = Reply) -> Session:
        """Not begun yet: what is put into its box is done when it has. `reply` is how the caller waits: on its loop, or as a
        thread without one.
        """
        session = Session(reply(), whoever())
        self._put(session)
        return session

    async def open_session(
        self,
        reply: type[Reply[Any]] = Reply,
        session: Session | None = None,
        first: Work[Any] | None = None,
    ) -> Session:
        """One that has begun: that which was asked for, or a new one. `first` is done as soon as it has begun."""
        session = session or self.ask_session(reply)
        if first is not None:
            session.box.put(first)
        try:
            await session.begun
        except BaseException:
            # Or it would begin later, and hold the lock for nobody.
            session.box.put(End(reply(), commit=False))
            raise
        self._session_open = session
        return session

    def _put(self, item: object) -> None:
        self.check_free()
        super()._put(item)

    def check_free(self) -> None:
        """What is not part of the transaction that its own task holds would wait for that, and so for itself."""
        session = self._session_open
        if session is not None and session.ended is None and session.owner is whoever():
            raise inside()

    def _open(self) -> None:
        super()._open()
        self._watch = self._watch or Watch(self._db.path)
        self._db.connection.set_progress_handler(self._late, _STEPS_BETWEEN_LOOKS)

    def _late(self) -> bool:
        return monotonic() > self._cutoff

    def _body(self) -> Waits[None]:
        while not self._stops or self._works:
            for item in (yield Take(self._inbox, 0 if self._works or self._sessions else None)):
                match item:
                    case Work():
                        self._works.append(item)
                    case Session():
                        self._sessions.append(item)
                    case Stop():
                        self._stops.append(item)
            # In turns: neither those who share commits nor those who have their own can keep the others out.
            if self._works:
                self._works.sort(key=lambda work: not work.urgent)
                yield from self._group(
                    [work for work in self._works[:GROUP_LIMIT] if not work.reply.given_up]
                )
                del self._works[:GROUP_LIMIT]
            if self._sessions and not self._stops:
                yield from self._session(self._sessions[0])
                del self._sessions[0]
        answer_all(
            [session.begun for session in self._sessions], NotOpen("The store was closed before this began.")
        )

    def _unanswered(self) -> list[Reply[Any]]:
        return [*(work.reply for work in self._works), *(session.begun for session in self._sessions)]

    def _begin(self, *, hasty: bool = False) -> Waits[None]:
        """Take the write lock, waiting for other processes through the kernel."""
        self._cutoff = float("inf")
        if self._watch is not None:
            self._watch.look()
        if self._broken:
            self._open()
            self._broken = False
        waited, pause = 0.0, 0.0005  # really, whatever clock a test holds
        while True:
            yield from self._awake()
            try:
                self._db.begin("IMMEDIATE", hasty=hasty)
            except apsw.BusyError as busy:
                if waited > LOCK_WAIT:
                    raise explain(busy) from busy
                rest = jittered(pause, 0.5)
                yield Pause(rest)
                waited, pause = waited + rest, min(pause * 2, 0.02)
            else:
                self._cutoff = monotonic() + TRANSACTION_LIMIT
                return

    def _commit(self, kind: str) -> None:
        crashpoint(f"{kind}.before_commit")
        try:
            self._db.commit()
        except apsw.IOError as error:
            # The disk may have the commit or not, and a second fsync would lie about the first. Start anew.
            self._db.close()
            self._broken = True
            raise CommitUnknown(
                f"SQLite lost its disk during COMMIT ({error}): it happened or it did not."
            ) from error
        try:
            crashpoint(f"{kind}.after_commit")
        except Exception as error:
            raise CommitUnknown(f"The answer to COMMIT was lost: {error}") from error

    def _rollback(self) -> None:
        self._cutoff = float("inf")
        if not self._broken:
            self._db.rollback()

    # Many callers to a commit.

    def _group(self, group: list[Work[Any]]) -> Waits[None]:
        """One transaction for all; when one piece fails after it has written, each gets a transaction of its own."""
        if not group:
            return
        try:
            yield from self._begin(hasty=all(work.hasty for work in group))
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            answer_all([work.reply for work in group], explained(error))
            return
        try:
            answers = [(work.reply, self._do(work)) for work in group]
            self._commit("store")
        except CommitUnknown as unknown:
            answer_all([work.reply for work in group], unknown)
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            self._rollback()
            if len(group) == 1:
                deliver([(group[0].reply, explained(error))])
                return
            for work in group:
                yield from self._group([work])
        else:
            deliver(answers)

    def _do(self, work: Work[Any]) -> Any:
        """The work's answer. A refusal that has written nothing is an answer too, and disturbs nobody else."""
        before = self._db.connection.total_changes()
        try:
            return work.call(self._db)
        except HoldfastError as refusal:
            if self._db.connection.total_changes() != before:
                raise
            return refusal

    # A caller's own transaction.

    def _session(self, session: Session) -> Waits[None]:
        try:
            yield from self._begin()
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            session.ended = str(error)
            deliver([(session.begun, explained(error))])
            return
        deliver([(session.begun, None)])
        yield from self._serve(session)
        # Whoever asks from now on is told, and so is whoever asked just now.
        for item in (yield Take(session.box, 0)):
            deliver([(item.reply, TransactionEnded(session.ended))])

    def _serve(self, session: Session) -> Waits[None]:
        while session.ended is None:
            items = yield Take(session.box, max(0.0, self._cutoff - monotonic()))
            if not items:
                self._rollback()
                session.ended = (
                    f"The transaction was cut off after {TRANSACTION_LIMIT:g} seconds and rolled back: "
                    "on SQLite it holds the only write lock. Keep slow work outside of it."
                )
            for item in items:
                ended = session.ended
                session.answering = item
                deliver(
                    [(item.reply, self._answer(session, item) if ended is None else TransactionEnded(ended))]
                )

    def _answer(self, session: Session, item: Work[Any] | End) -> Any:
        try:
            if isinstance(item, End):
                session.ended = "The transaction has ended."
                return self._end(session, item)
            return self._within(session, item)
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            if session.ended is None and not self._db.connection.in_transaction:
                session.ended = f"SQLite rolled the transaction back: {error}"
            return meaning(error) if isinstance(item, End) else explained(error)

    def _within(self, session: Session, work: Work[Any]) -> Any:
        answer = work.call(self._db)
        if not self._db.connection.in_transaction:
            session.ended = (
                "A statement of the transaction has ended it by hand. Let the end of its block do that."
            )
        return answer

    def _end(self, session: Session, end: End) -> None:
        if not end.commit:
            self._rollback()
            return
        try:
            session.standing.check_commit()
            if end.last is not None:
                end.last(self._db)
            self._commit("transaction")
        except CommitUnknown:
            raise
        except Exception:
            self._rollback()
            raise
