"""Check the seams: clocks, chance, threads and processes are reached through the kernel, and crash points are declared.

A simulation can only repeat what goes through the kernel, so one stray `time.time()` would make its runs differ.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from tools.sources import Problem, Source, imported, read, report

CLOCK, CHANCE = "use holdfast.kernel.clock", "use holdfast.kernel.randomness"
IDS, SLEEP = "use holdfast.kernel.ids.new_id", "use holdfast.kernel.clock.sleep"
THREADS = "use holdfast.kernel.spawn"
TIMEOUT = "use holdfast.kernel.clock.timeout"
TASKS = "use holdfast.kernel.spawn.spawn"
HIDDEN = "import it by its name, so that this check can see it"
PROCESSES = "processes are started in the kernel only"
UNSAFE = "it can run what stands in the data; use holdfast.kernel.codec"

# A name bans all below it: `time` bans time.time, time.sleep and the rest.
NOWHERE = dict.fromkeys(
    ["pickle", "marshal", "shelve", "dill", "cloudpickle", "builtins.eval", "builtins.exec"], UNSAFE
)
KERNEL_ONLY = {
    "time": CLOCK,
    "sched": CLOCK,
    "datetime.date.today": CLOCK,
    "datetime.datetime.now": CLOCK,
    "datetime.datetime.today": CLOCK,
    "datetime.datetime.utcnow": CLOCK,
    "asyncio.sleep": SLEEP,
    "loop.time": CLOCK,
    **dict.fromkeys(
        ["asyncio.timeout", "asyncio.timeout_at", "asyncio.wait_for", "loop.call_later"], TIMEOUT
    ),
    "loop.call_at": TIMEOUT,
    **dict.fromkeys(["asyncio.create_task", "asyncio.ensure_future", "loop.create_task"], TASKS),
    "asyncio.TaskGroup": TASKS,
    **dict.fromkeys(["asyncio.tasks", "asyncio.timeouts", "asyncio.wait", "asyncio.as_completed"], TIMEOUT),
    **dict.fromkeys(["select", "selectors", "signal.alarm", "signal.setitimer"], CLOCK),
    "random": CHANCE,
    "secrets": CHANCE,
    "os.getrandom": CHANCE,
    "os.urandom": CHANCE,
    **{f"uuid.uuid{version}": IDS for version in (1, 4, 6, 7)},
    **dict.fromkeys(
        ["threading", "_thread", "queue", "concurrent.futures", "asyncio.to_thread", "loop.run_in_executor"],
        THREADS,
    ),
    **dict.fromkeys(["subprocess", "multiprocessing", "pty"], PROCESSES),
    **dict.fromkeys(["asyncio.subprocess", "asyncio.create_subprocess_exec"], PROCESSES),
    "asyncio.create_subprocess_shell": PROCESSES,
    **{
        f"os.{name}": PROCESSES
        for name in ("fork", "forkpty", "popen", "posix_spawn", "posix_spawnp", "system")
    },
    **{
        f"os.{verb}{form}": PROCESSES
        for verb in ("exec", "spawn")
        for form in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
    },
}
GIVES_LOOP = ("asyncio.get_running_loop", "asyncio.get_event_loop", "asyncio.new_event_loop")
METHODS = {"run_in_executor", "call_later", "call_at"}  # of a loop, whatever that is called
LOOP_METHODS = METHODS | {"time", "create_task"}  # of what is seen to be a loop
ROOTS = frozenset(name.partition(".")[0] for name in KERNEL_ONLY) | {"os"}
OURS = {"holdfast.kernel.randomness.random"}  # made there, and only called like a module

KERNEL, TESTING, SIMULATION = (
    "src/holdfast/kernel/",
    "src/holdfast/testing/",
    "src/holdfast/testing/simulation/",
)
# Where something is allowed after all, and why it does no harm there.
ALLOWED = {
    SIMULATION: {
        "random.Random": "it is given the seed",
        "asyncio.sleep": "its loop counts virtual seconds",
        "loop.time": "its loop counts virtual seconds",
        "loop.call_later": "its loop counts virtual seconds",
        "loop.call_at": "its loop counts virtual seconds",
        "loop.create_task": "its loop chooses by seed which task runs",
    },
    SIMULATION + "__main__.py": {
        "time.monotonic": "the command line tells a person how long it took",
    },
    SIMULATION + "many.py": {
        "multiprocessing": "each process runs whole histories; nothing inside one depends on it",
    },
}

CRASHPOINTS_FILE = KERNEL + "crashpoints.py"


# --- seams ---


def check(source: Source) -> Iterator[Problem]:
    banned, allowed = rules_for(source.path)
    names = {name: f"builtins.{name}" for name in ("eval", "exec")}
    for line, local, full in bindings(source):
        if local == "*":
            if any(f"{each}.".startswith(f"{full}.") for each in banned):
                yield Problem(source.path, line, f"imports everything from {full}: {HIDDEN}")
            continue
        names[local] = full
        if (reason := objection(full, banned)) and not any(
            f"{each}.".startswith(f"{full}.") for each in allowed
        ):
            yield Problem(source.path, line, f"imports {full}: {reason}")
            names[local] = ""  # said once, here, and not again at every use
    names |= aliases(source, names)
    for line, full in uses(source, names):
        if (reason := objection(full, banned)) and not objection(full, dict.fromkeys(allowed, "allowed")):
            yield Problem(source.path, line, f"uses {full.removeprefix('builtins.')}: {reason}")


def rules_for(path: str) -> tuple[dict[str, str], set[str]]:
    """What is banned in this file, and what is allowed all the same."""
    allowed = {name for place, names in ALLOWED.items() if path.startswith(place) for name in names}
    drives_reality = path.startswith((KERNEL, TESTING)) and not path.startswith(SIMULATION)
    return NOWHERE if drives_reality else NOWHERE | KERNEL_ONLY, allowed


def objection(full: str, banned: dict[str, str]) -> str | None:
    """Why this dotted name is banned: it stands in the table, or something above it does."""
    parts = full.split(".")
    if (
        parts[0] == "holdfast" and full not in OURS
    ):  # what one of our modules imported itself: reality.time.time
        parts = parts[next((place for place, part in enumerate(parts) if part in ROOTS), 0) :]
    return next(
        (banned[name] for n in range(len(parts)) if (name := ".".join(parts[: n + 1])) in banned), None
    )


def bindings(source: Source) -> Iterator[tuple[int, str, str]]:
    """(line, the name in this file, what it stands for) for each import."""
    for line, module, name, bound in imported(source):
        if name == "*":
            yield line, "*", module
        elif name in ROOTS and module.startswith("holdfast.") and f"{module}.{name}" not in OURS:
            assert name is not None
            yield line, bound or name, name  # one of our modules lends what it imported itself
        elif name is not None:
            yield line, bound or name, f"{module}.{name}"
        elif bound is not None:
            yield line, bound, module
        else:
            yield line, module, module
            yield line, module.partition(".")[0], module.partition(".")[0]  # `import a.b` binds a


def aliases(source: Source, names: dict[str, str]) -> dict[str, str]:
    """Other names that the file itself gives to what it imported: `wait = asyncio.sleep`."""
    found: dict[str, str] = {}
    for node in ast.walk(source.tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as value):
                if full := dotted(value, names | found):
                    found[name] = full
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
                if dotted(function, names | found) in GIVES_LOOP:
                    found[name] = "loop"
    return found


def uses(source: Source, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    """(line, full dotted name) for each use of an imported name, as long as the chain of dots goes."""
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, ast.Name | ast.Attribute)]
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_of_loop(node, names):
            yield node.lineno, f"loop.{node.attr}"
        elif id(node) not in inner and (full := dotted(node, names)):
            yield node.lineno, full


def is_of_loop(node: ast.Attribute, names: dict[str, str]) -> bool:
    """A method that only loops have, or one of something that is called a loop or was got as one."""
    match node.value:
        case ast.Name(id=owner) | ast.Attribute(attr=owner):
            seen = owner.strip("_") == "loop" or names.get(owner) == "loop"
        case ast.Call(func=function):
            seen = dotted(function, names) in GIVES_LOOP
        case _:
            seen = False
    return node.attr in (LOOP_METHODS if seen else METHODS)


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            above = dotted(value, names)
            return f"{above}.{attribute}" if above else ""
    return ""


# --- crash points ---


def check_crashpoints(sources: Iterable[Source]) -> Iterator[Problem]:
    """Every name that is used is declared, and the other way round."""
    sources = list(sources)
    declared = dict(
        name for source in sources if source.path == CRASHPOINTS_FILE for name in declarations(source)
    )
    used: set[str] = set()
    for source in sources:
        for line, pattern in crashpoints(source):
            meant = [name for name in declared if fnmatchcase(name, pattern)]
            used.update(meant)
            if pattern == "*":
                yield Problem(
                    source.path, line, "a crash point's name must be a literal, so that it can be found"
                )
            elif not meant:
                yield Problem(
                    source.path, line, f"the crash point {pattern!r} is not declared in {CRASHPOINTS_FILE}"
                )
    for name in declared.keys() - used:
        yield Problem(
            CRASHPOINTS_FILE, declared[name], f"the crash point {name!r} stands nowhere in the code"
        )


def declarations(source: Source) -> Iterator[tuple[str, int]]:
    for node in source.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="CRASHPOINTS")], value=ast.Dict(keys=keys)):
                yield from ((str(key.value), key.lineno) for key in keys if isinstance(key, ast.Constant))


def crashpoints(source: Source) -> Iterator[tuple[int, str]]:
    """(line, pattern) for each call: the name, with a star for each part that a format string fills in."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Name(id="crashpoint") | ast.Attribute(attr="crashpoint"), args=args):
                yield node.lineno, pattern_of(args)


def pattern_of(args: list[ast.expr]) -> str:
    match args:
        case [ast.Constant(value=str() as name)]:
            return name
        case [ast.JoinedStr(values=parts)]:
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts)
    return "*"


def main() -> int:
    sources = list(read("src/holdfast"))
    problems = [found for source in sources for found in check(source)]
    return report([*problems, *check_crashpoints(sources)], "seams")


if __name__ == "__main__":
    sys.exit(main())
