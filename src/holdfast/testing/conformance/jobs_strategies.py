"""What the random commands on jobs are made of."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.store.steps import Kind, Progress, Step

QUEUES = ("a", "b")
LIMITS = {"c1": 1, "c2": 2}
BOUND = 3  # max_waiting of the bounded task


RARE: dict[str, list[Any]] = {
    "priority": [-1, 1],
    "delay": [0.0, 5.0, 40.0],
    "expires": [4.0, 35.0],
    "within": [0.0, 60.0],
    "unique": ["u1", "u2"],
    "ordered": ["o1", "o2"],
    "by_time": [True],
    "concurrency": sorted(LIMITS),
    "tenant": ["t1", "t2"],
    "guard": ["g1", "g2"],
    "max_waiting": [BOUND],
}


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """What a job may ask for; most ask for little, or little would ever be ready."""
    names = draw(st.lists(st.sampled_from(sorted(RARE)), max_size=3, unique=True))
    chosen = {name: draw(st.sampled_from(RARE[name])) for name in names}
    if "by_time" in chosen:
        chosen.setdefault("ordered", "o1")
    return {"queue": draw(st.sampled_from(QUEUES)), **chosen}


def outcomes() -> st.SearchStrategy[Outcome]:
    after = st.sampled_from([0.0, 3.0, 10.0])
    return st.one_of(
        st.just(Done('"ok"')),
        st.builds(Retry, after=after, error=st.sampled_from([None, "oops"])),
        st.builds(Snooze, after=after, reason=st.sampled_from([None, "later"])),
        st.just(Cancel("gone")),
        st.just(Dead("broken")),
        st.just(Unknown("who knows")),
    )


def steps() -> st.SearchStrategy[Step]:
    names = st.sampled_from([("upload", 0), ("publish", 1), ("mail", 2)])
    kinds = st.sampled_from([Kind.STEP, Kind.AT_MOST_ONCE, Kind.AT_MOST_ONCE, Kind.KEYED])
    progress = st.sampled_from(
        [Progress.BEGUN, Progress.BEGUN, Progress.SOUGHT, Progress.DONE, Progress.FAILED, Progress.UNKNOWN]
    )
    return st.builds(
        lambda name, kind, progress: Step(name=name[0], number=name[1], kind=kind, progress=progress),
        names, kinds, progress,
    )  # fmt: skip


picks = st.lists(st.integers(0, 5), min_size=1, max_size=4)
wants = st.sampled_from([{"a": 4, "b": 4}, {"b": 3, "a": 3}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1}])
workers = st.sampled_from(["w1", "w2"])
