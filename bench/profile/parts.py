"""From a stack to the part of the work that it belongs to: the innermost frame that a rule knows decides."""

from __future__ import annotations

from types import FrameType

# (end of the file's path, functions or none for all of them, part)
_RULES: list[tuple[str, tuple[str, ...], str]] = [
    ("profile/sampler.py", ("_notice",), "garbage collection"),
    ("bench/body.py", (), "the job's body (counting)"),
    ("bench/peers/holdfast.py", (), "the job's body (counting)"),
    ("jobs/signature.py", (), "argument decode"),
    ("kernel/codec.py", (), "argument decode"),
    ("jobs/executor.py", (), "executor: around the body"),
    ("jobs/attempt.py", (), "executor: around the body"),
    ("jobs/job.py", (), "executor: around the body"),
    ("jobs/hooks.py", (), "executor: around the body"),
    ("kernel/context.py", (), "executor: around the body"),
    ("kernel/waits.py", (), "executor: around the body"),
    ("jobs/worker.py", ("_take",), "worker: take and start"),
    ("jobs/slots.py", ("_report",), "worker: report and end"),
    ("jobs/slots.py", (), "worker: take and start"),
    ("jobs/run.py", ("__init__", "key"), "worker: take and start"),
    ("kernel/spawn.py", ("start",), "worker: take and start"),
    ("jobs/registry.py", ("get",), "worker: take and start"),
    ("_weakrefset.py", (), "event loop and task switch"),  # asyncio knows all its tasks
    ("asyncio/base_events.py", ("create_task",), "worker: take and start"),
    ("jobs/worker.py", (), "worker: report and end"),
    ("jobs/pace.py", (), "worker: report and end"),
    ("jobs/run.py", (), "worker: report and end"),
    ("store/postgres/rows.py", (), "claim decode"),
    ("store/postgres/claiming.py", (), "claim decode"),
    ("store/postgres/low_water.py", (), "claim decode"),
    ("store/sqlite/rows.py", (), "claim decode"),
    ("store/sqlite/claims.py", (), "claim decode"),
    ("store/records.py", ("check_id",), "checks at the store's edge"),
    ("store/records.py", (), "finish encode"),
    ("store/once.py", (), "finish encode"),
    ("store/postgres/finishes.py", (), "finish encode"),
    ("store/sqlite/finishes.py", (), "finish encode"),
    ("store/sqlite/connection.py", (), "driver (on SQLite also the database)"),
    ("store/checks.py", (), "checks at the store's edge"),
    ("store/edge.py", (), "checks at the store's edge"),
    ("kernel/names.py", (), "checks at the store's edge"),
    ("store/postgres/", (), "store: pool and retries"),
    ("store/sqlite/", (), "store: the writer's thread"),
    ("asyncpg/", (), "driver (on SQLite also the database)"),
    ("asyncio/selector_events.py", ("_read_ready", "_read_ready__data_received", "write", "writelines", "_write_ready",
                                    "_write_send", "_write_sendmsg"), "driver (on SQLite also the database)"),
    ("asyncio/", (), "event loop and task switch"),
    ("selectors.py", (), "event loop and task switch"),
    ("holdfast/", (), "other"),
]  # fmt: skip
SERVER, TOTAL = "the server (PostgreSQL)", "all of the worker process"
ORDER = [*dict.fromkeys(part for _, _, part in _RULES), TOTAL, SERVER]
_known: dict[tuple[str, str], str | None] = {}


def part_of(frame: FrameType | None) -> str:
    while frame is not None:
        code = frame.f_code
        key = code.co_filename, code.co_name
        if key not in _known:
            _known[key] = _rule(*key)
        if (part := _known[key]) is not None:
            return part
        frame = frame.f_back
    return "other"


def _rule(file: str, function: str) -> str | None:
    """None: what is called from many places belongs to its caller."""
    if file.endswith(("kernel/clock.py", "kernel/reality.py", "kernel/world.py", "kernel/crashpoints.py")):
        return None
    for end, functions, part in _RULES:
        if (file.endswith(end) or (end.endswith("/") and end in file)) and (
            not functions or function in functions
        ):
            return part
    return None
