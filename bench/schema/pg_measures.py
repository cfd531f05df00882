"""What only PostgreSQL is asked: the price of each index, rule and form of SQL, and of renewing leases."""

from __future__ import annotations

from dataclasses import replace

from .measures import Figures, Session, figure_of, fresh, take_turns
from .model import Speed, Work
from .pg_bench import PgBench


def variants(session: Session) -> Figures:
    bench = session.bench
    assert isinstance(bench, PgBench)
    names = ["limit", *bench.variants()]
    for batch, procs in ((100, 1), (500, 2)):
        queued, work = session.size.queued[batch], Work(batch, procs)
        speeds = take_turns(session, names, lambda name: fresh(session, name, queued, work))  # noqa: B023
        for name in names:
            figure = figure_of(session, "variant", name, speeds, batch=batch, procs=procs, variant=name)
            yield replace(figure, system="limit" if name == "limit" else "design-C")


def steps(session: Session) -> Figures:
    """From the limit to the chosen design, one promise at a time."""
    bench = session.bench
    assert isinstance(bench, PgBench)
    names = ["limit", *bench.steps()]
    queued, work = session.size.queued[500], Work(500)
    speeds = take_turns(session, names, lambda name: fresh(session, name, queued, work))
    for name in names:
        figure = figure_of(session, "step", name, speeds, batch=500, procs=1, step=name)
        yield replace(figure, system="limit" if name == "limit" else "design-C")


def renewals(session: Session) -> Figures:
    """500 running jobs whose leases are renewed again and again."""
    bench = session.bench
    assert isinstance(bench, PgBench)
    names = ["as chosen", "job_for_rescue on token", "no job_for_rescue", "fillfactor 50"]

    def run(name: str) -> Speed:
        bench.create("fresh", name)
        bench.fill("fresh", 5_000)
        speed = bench.renew("fresh", 500, 60)
        bench.drop("fresh")
        return speed

    speeds = take_turns(session, names, run)
    for name in names:
        figure = figure_of(session, "renew", name, speeds, variant=name, batch=500)
        yield replace(figure, system="design-C")
