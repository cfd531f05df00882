"""One worker that drains what is queued, and then says where its CPU time went: python -m bench.profile.worker JOBS."""

from __future__ import annotations

import asyncio
import json
import sys

from bench import body
from bench.peers.holdfast import SLOTS, hf
from bench.place import folder
from bench.profile.sampler import Sampler


async def drain(jobs: int) -> Sampler:
    sampler = Sampler(writer="holdfast-writer")
    async with hf, hf.worker(queues={"default": SLOTS}) as service:
        body.ready()
        assert service.worker is not None
        sampler.start()
        while service.worker.finished < jobs:
            await asyncio.sleep(0.02)
        (folder() / "answer").write_text(json.dumps(sampler.stop()))
    return sampler


def main(jobs: int) -> None:
    sampler = asyncio.run(drain(jobs))
    whole = sum(sampler.lines.values())
    for line, seconds in sampler.lines.most_common(60):
        print(f"{100 * seconds / whole:5.1f} % {line}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
