"""`probes(hf)`: an ASGI app that answers /live, /ready and /startup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from weakref import WeakKeyDictionary

import msgspec

from holdfast.jobs.working import Work
from holdfast.kernel.clock import host_now, moment, monotonic
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.store.ports import Store
from holdfast.web.asgi import Receive, Scope, Send, answer, path_of
from holdfast.web.probes.questions import Question, Questions
from holdfast.web.probes.report import Check, Report, Shape, plain

PATHS = {"/live": "live", "/ready": "ready", "/startup": "startup"}
_KINDS = ("live", "ready", "startup")


class Program(Protocol):
    """As much of Holdfast as probes need."""

    @property
    def store(self) -> Store: ...
    def working(self) -> Work | None: ...


class Probes:
    """What `probes(hf)` returns. `report(kind)` is the same without HTTP."""

    def __init__(
        self, hf: Program, *, service: str, paths: Mapping[str, str], shape: Shape, patience: float,
        needed: Mapping[str, Question], told: Mapping[str, Question],
    ) -> None:  # fmt: skip
        for path, kind in paths.items():
            if kind not in _KINDS or not str(path).startswith("/"):
                raise UsageError(
                    f"Paths are such as {{'/health': 'live'}}, of {', '.join(_KINDS)}; not {show(dict(paths))}."
                )
        self._hf, self._service, self._shape = hf, check_name("service", service), shape
        self.paths = dict(paths)
        self._questions = Questions(
            lambda: hf.store, needed, told, check_seconds("patience", patience, minimum=0.01)
        )
        self._began = monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        if scope["type"] != "http":
            return
        kind = self.paths.get(path_of(scope))
        if kind is None or scope["method"] not in ("GET", "HEAD"):
            await answer(send, 404 if kind is None else 405, b"", [(b"content-length", b"0")])
            return
        report = await self.report(kind)
        body = msgspec.json.encode(self._shape(report))
        fields = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
        ]
        await answer(send, 200 if report.well else 503, body, fields, empty=scope["method"] == "HEAD")

    async def report(self, kind: str, work: Work | None = None) -> Report:
        work = work or self._hf.working()
        checks = await self._checks(kind, work)
        done = [each for each in checks if each.well]
        return Report(
            probe=kind,
            well=all(each.well for each in checks if each.needed),
            checks=checks,
            service=self._service,
            uptime=monotonic() - self._began,
            timestamp=moment(host_now()).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            work=work,
            progress=len(done) / len(checks) if checks else 1.0,
        )  # fmt: skip

    async def _checks(self, kind: str, work: Work | None) -> tuple[Check, ...]:
        if kind == "live":  # whoever answers lives: this asks nobody
            stalled = None if work is None else work.stalled
            return (Check(name="loop", well=stalled is None, error=stalled),)
        mine = () if work is None else (_worker(work),)
        if kind == "startup":
            return (*await self._questions.startup(), *mine)
        return (*await self._questions.ready(), *mine)


def _worker(work: Work) -> Check:
    return Check(
        name="worker", well=work.running, error=None if work.running else work.trouble or "it takes no jobs"
    )


_given: WeakKeyDictionary[Program, Probes] = WeakKeyDictionary()


def probes(
    hf: Program,
    *,
    service: str = "holdfast",
    paths: Mapping[str, str] = PATHS,
    shape: Shape = plain,
    patience: float = 2.0,
    needed: Mapping[str, Question] | None = None,
    told: Mapping[str, Question] | None = None,
) -> Probes:
    """An ASGI app: `Mount("/health", probes(hf))`. A worker with `--probe` serves the same, as the last call for its hf says.

    `paths` says which path is which probe, `shape` makes the JSON of a `Report`. Ready asks whether the tables and the database
    are there, and the worker takes jobs; `needed` and `told` are further questions by name, async functions that return None when all
    is well, else why not, or raise: those of `needed` must be well, those of `told` are only told. Each has `patience` seconds.
    """
    made = Probes(
        hf, service=service, paths=paths, shape=shape, patience=patience, needed=needed or {}, told=told or {}
    )
    _given[hf] = made
    return made


def probes_of(hf: Program) -> Probes:
    """Those that the program has made last, else the usual ones."""
    return _given.get(hf) or probes(hf)
