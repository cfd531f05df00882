"""All sagas of one program: declaring them, looking at them, and what people decide about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.fleet.leading import TTL
from holdfast.jobs.registry import Registry
from holdfast.jobs.task import Sender
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import UsageError
from holdfast.kernel.options import check_options
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.sagas.choreography import Choreography
from holdfast.sagas.declaration import SagaOptions
from holdfast.sagas.handle import SagaRun
from holdfast.sagas.listening import Listener
from holdfast.sagas.refs import Refs
from holdfast.sagas.running import RunningSaga
from holdfast.sagas.saga import Saga
from holdfast.sagas.script import Script
from holdfast.sagas.timeline import History, history
from holdfast.store.ports import Store
from holdfast.store.saga_records import SagaAnswer, SagaRecord, SagaState


@must_await_all("hf.sagas")
class Sagas:
    """`hf.sagas`."""

    _store: Store

    def __init__(self, registry: Registry, sender: Sender) -> None:
        self._registry, self._sender = registry, sender
        self._declared: dict[str, Saga] = {}
        self.refs = Refs()

    def keep_in(self, store: Store) -> None:
        """From now on."""
        self._store = store

    def _its_store(self) -> Store:
        return self._store

    # --- declaring ---

    def declare(self, name: str, function: Callable[..., Any], options: dict[str, Any]) -> Saga:
        check_options(f"@hf.saga({name!r})", options, SagaOptions.__struct_fields__)
        said = SagaOptions(**options)
        self._refuse_twin(name, function)
        script = Script(function, said, self.refs)
        saga = Saga(name, script, registry=self._registry, sender=self._sender, store=self._its_store)
        for each in (saga.name, *said.aliases):
            self._declared[each] = saga
        return saga

    def _refuse_twin(self, name: str, function: Callable[..., Any]) -> None:
        there = self._declared.get(name)
        if there is not None and _place(there.function) != _place(function):
            raise UsageError(
                f"Two sagas are called {name!r}: {_place(there.function)} and {_place(function)}. Rename one."
            )

    def declared(self, name: str) -> Saga | None:
        """The saga of this name, when this program has it."""
        return self._declared.get(name)

    def watch(self, choreography: Choreography) -> Callable[..., Any]:
        """The handler that tells of its events; each story is a saga of its name."""

        async def watched(saga: RunningSaga) -> str:
            return await choreography.watch(saga)

        watched.__qualname__ = f"choreography.{choreography.name}"
        script = Script(watched, SagaOptions(), self.refs)
        self._refuse_twin(choreography.name, watched)
        saga = Saga(
            choreography.name, script, registry=self._registry, sender=self._sender, store=self._its_store
        )
        self._declared[saga.name] = saga
        return choreography.handler(self._its_store, lambda saga_id: saga.new((), id=saga_id))

    def services(self, owner: str, lease: float = TTL) -> list[Listener]:
        """What a worker with such a lease runs beside its jobs."""
        return [self.listener(owner, min(TTL, lease))] if self._declared else []

    def listener(self, owner: str, ttl: float = TTL) -> Listener:
        """Wakes those that wait for events."""
        return Listener(self._store, owner=owner, ttl=ttl)

    @property
    def is_empty(self) -> bool:
        """Whether the program has declared none."""
        return not self._declared

    # --- looking ---

    async def get(self, saga_id: str) -> SagaRecord | None:
        """The saga as it is stored, or None."""
        return await self._store.sagas.get(saga_id)

    async def find(
        self, *, state: SagaState | None = None, name: str | None = None, limit: int = 100
    ) -> list[SagaRecord]:
        """Newest first."""
        return await self._store.sagas.find(state=state, name=name, limit=limit)

    async def history(self, saga_id: str) -> History | None:
        """All that is recorded of a saga, as one story; None: there is no such saga. `.as_json()` is for programs."""
        return await history(self._store, saga_id)

    def run(self, saga_id: str) -> SagaRun:
        """A handle on a saga by its id."""
        return SagaRun(self._store, saga_id, created=False)

    # --- deciding ---

    async def cancel(self, saga_id: str, *, actor: str, reason: str, done_too: bool = False) -> SagaAnswer:
        """Have it undone; leaves an audit row. `done_too`: also one that is done, while its steps are kept."""
        return await self._store.sagas.cancel(saga_id, actor=actor, reason=reason, done_too=done_too)

    async def retry(self, saga_id: str, *, actor: str) -> SagaAnswer:
        """Let one that needs a person, or is parked, go on from where it stands; leaves an audit row."""
        return await self._store.sagas.retry(saga_id, actor=actor)

    async def settle(
        self, saga_id: str, step: str, *, done: bool, result: Any = None, actor: str
    ) -> SagaAnswer:
        """Say whether a step, or an undo, was done, and with which result; it goes on from there. Leaves an audit row."""
        if result is not None and not done:
            raise UsageError("A result is of a step that was done: give it with done=True.")
        text = None if result is None else encode(result, limit=RESULT_LIMIT, where="result")
        return await self._store.sagas.settle(saga_id, step, done=done, result=text, actor=actor)


def _place(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    where = "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
    return f"{getattr(function, '__qualname__', function)}{where}"
