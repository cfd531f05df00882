"""`holdfast doctor` and `health`: what a supervisor and a person in a hurry ask."""

import asyncio

from cli_kit import Kept, put, put_running
from opentelemetry.sdk.trace import TracerProvider

from holdfast.kernel import tracing
from holdfast.kernel.clock import sleep
from holdfast.observe import traces
from holdfast.runtime.cli import health


def test_doctor_is_one_line_for_each_check(shop, on_store):
    on_store(put, 2)
    shop("queues", "pause", "mail")
    code = shop("doctor")
    lines = shop.out.splitlines()
    assert {line.split()[0] for line in lines[1:]} <= {"OK", "WARN", "BAD"}
    assert code == int(any(line.startswith("BAD") for line in lines))
    [paused] = [line for line in lines if line.startswith("WARN  paused")]
    assert paused.endswith("holdfast queues resume mail.")
    document = shop.json("doctor", "-p", "2")
    assert {"check", "level", "found", "todo"} == set(document["checks"][0])
    assert document["worst"] in ("warn", "bad")  # the servers of tests are not durable
    assert "***" not in shop.out


def test_doctor_fails_when_nobody_rescues(line, monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///holdfast.db")
    assert line("migrate") == 0
    assert line("doctor") == 0

    async def lose():
        async with Kept("sqlite:///holdfast.db") as store:
            await put_running(store)
            async with store.transaction() as tx:
                await tx.execute("UPDATE holdfast_running SET lease_until = lease_until - 100")

    asyncio.run(lose())
    assert line("doctor") == 1
    assert "BAD   leases" in line.out
    assert line.json("doctor")["worst"] == "bad"


def test_doctor_without_a_database(line, tmp_path):
    assert line("doctor", "--url", "sqlite:///holdfast.db") == 1
    assert "holdfast migrate --url sqlite:///holdfast.db" in line.out
    assert "There is no file 'holdfast.db'" in line.out
    assert not list(tmp_path.iterdir())


def test_probes(shop):
    for probe in ("--live", "--startup", "--ready"):
        assert shop("health", probe) == 0
        assert shop.out == f"{probe[2:]}: well.\n"
    assert shop.json("health")["probe"] == "ready"


def test_a_probe_fails_without_its_database(line, empty_postgres_url):
    nobody = "postgresql://localhost:1/none?patience=0"
    assert line("health", "--live", "--url", nobody) == 0
    for probe in ("--startup", "--ready"):
        assert line("health", probe, "--url", nobody) == 1
        assert "cannot be reached" in line.err
    assert line("health", "--url", "sqlite:///none.db") == 1
    document = line.json("health", "--startup", "--url", empty_postgres_url)
    assert (document["well"], "holdfast migrate" in document["trouble"]) == (False, True)


def test_a_database_that_takes_no_writes_is_not_ready(line, postgres_url):
    name = postgres_url.rpartition("/")[2]

    async def say(sql):
        async with Kept(postgres_url) as store, store.transaction() as tx:
            await tx.execute("SET LOCAL transaction_read_only = off" if "RESET" in sql else "SELECT 1")
            await tx.execute(sql)

    asyncio.run(say(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    try:
        assert line("health", "--startup", "--url", postgres_url) == 0
        assert line("health", "--ready", "--url", postgres_url) == 1
        assert "accepts no writes" in line.err
    finally:
        import asyncpg

        async def reset():
            connection = await asyncpg.connect(
                postgres_url, server_settings={"default_transaction_read_only": "off"}
            )
            await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
            await connection.close()

        asyncio.run(reset())


def test_a_probe_does_not_wait_for_ever(line, monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///holdfast.db")

    async def stuck(hf, *, writing):
        await sleep(3600)

    assert line("migrate") == 0
    monkeypatch.setattr(health, "_look", stuck)
    assert line("health", "--timeout", "0.01") == 1
    assert "did not answer within 0.01 s" in line.err


def said(line):
    return [each for each in line.json("doctor")["checks"] if each["check"] == "probes and metrics"]


def test_doctor_knows_the_settings_of_probes_and_metrics(line, monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///holdfast.db")
    assert line("migrate") == 0
    assert said(line) == []
    monkeypatch.setenv("HOLDFAST_WORKER_PROBE", "127.0.0.1:8000")
    monkeypatch.setenv("HOLDFAST_METRICS_FOLDER", str(tmp_path))
    assert [each["level"] for each in said(line)] == ["ok", "ok"]
    monkeypatch.setenv("HOLDFAST_WORKER_PROBE", "0.0.0.0:8000")
    tmp_path.chmod(0o777)
    assert [each["level"] for each in said(line)] == ["warn", "warn"]
    monkeypatch.setenv("HOLDFAST_WORKER_PROBE", "nonsense")
    assert "127.0.0.1:8000" in said(line)[0]["found"]
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOLDFAST_METRICS_FOLDER", str(tmp_path / "file" / "folder"))
    assert said(line)[1]["level"] == "bad"
    assert "nothing can be written there" in said(line)[1]["found"]


def test_doctor_asks_the_redis_of_sessions(line, monkeypatch, own_valkey):
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///holdfast.db")
    assert line("migrate") == 0

    def told():
        return [each["level"] for each in line.json("doctor")["checks"] if each["check"] == "sessions"]

    assert told() == []
    monkeypatch.setenv("HOLDFAST_SESSIONS_URL", own_valkey.url)
    assert told() == ["ok"]
    own_valkey.kill()
    assert told() == ["bad"]


def test_doctor_knows_whether_anybody_takes_spans(line, monkeypatch):
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///holdfast.db")
    monkeypatch.setattr(tracing, "_tracers", [])
    assert line("migrate") == 0

    def said_of_traces():
        return [each["level"] for each in line.json("doctor")["checks"] if each["check"] == "traces"]

    assert said_of_traces() == []
    monkeypatch.setenv("HOLDFAST_TRACES", "on")
    assert said_of_traces() == ["warn"]
    traces(TracerProvider(shutdown_on_exit=False))
    assert said_of_traces() == ["ok"]
