"""Read what is exported as Prometheus does."""

from __future__ import annotations

import subprocess

import httpx
from debian import tool
from prometheus_client.parser import text_string_to_metric_families


class Samples:
    """The numbers of one scrape, by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = list(text_string_to_metric_families(text))
        self.numbers = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.numbers.get((name, tuple(sorted(labels.items()))))

    def total(self, name: str, **labels: str) -> float:
        wanted = set(labels.items())
        return sum(
            number
            for (found, given), number in self.numbers.items()
            if found == name and wanted <= set(given)
        )


async def scraped(app) -> Samples:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as client:
        answer = await client.get("/")
        assert answer.status_code == 200, answer.text
        return Samples(answer.text)


def check_with_promtool(text: str) -> None:
    done = subprocess.run(
        [tool("promtool", "prometheus"), "check", "metrics"],
        input=text, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
