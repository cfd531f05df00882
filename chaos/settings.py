"""What every process of a phase must agree on."""

from __future__ import annotations

import os
from pathlib import Path

LEASE = 2.5  # seconds; 30 by default, and nobody wants to wait for that a thousand times
# How long after the end of a lease its job may wait. A killed holder of the upkeep is followed after its own lease, which is no
# longer than a job's, and a third of it; rescues are looked for each second, and a suspect's turn comes every two. The rest is
# for two cores that run some thirty processes.
SCAN = 7.5
CALL_LIMIT = 1.0  # seconds that a publication waits for its answer
LATEST = 1.5  # seconds after which the provider has accepted what it accepts after nobody waits any more
SETTLE = 3.0  # seconds: above the provider's latest

FOLDER = "CHAOS_FOLDER"  # where the second database, the journals and the provider's address are
PARENT = "CHAOS_PARENT"  # the pid of the harness: what it starts ends with it
VERSION = "CHAOS_VERSION"  # of the program: 1 or 2
MANNER = "CHAOS_MANNER"  # of the provider, when it shall always have the same
CALLER = "CHAOS_CALLER"  # a caller's name
KINDS = (
    "CHAOS_KINDS"  # what it enqueues, separated by commas; a kind that is there twice comes twice as often
)
RATE = "CHAOS_RATE"  # how many it asks for in a second, about
COUNT = "CHAOS_COUNT"  # after so many were acknowledged it leaves

TABLES = (
    "CREATE TABLE orders (item TEXT PRIMARY KEY)",
    "CREATE TABLE parcels (item TEXT, job TEXT, token BIGINT)",
    "CREATE TABLE ticks (nominal TEXT, job TEXT, token BIGINT)",
    "CREATE TABLE heard (item TEXT, type TEXT, key TEXT, version BIGINT, job TEXT, at DOUBLE PRECISION)",
)


def folder() -> Path:
    return Path(os.environ[FOLDER])


def second_database(where: Path) -> Path:
    return where / "elsewhere.db"


def address_file(where: Path) -> Path:
    return where / "provider.port"


def provider_journal(where: Path) -> Path:
    return where / "provider.jsonl"


def caller_journal(where: Path, name: str) -> Path:
    return where / f"caller-{name}.jsonl"
