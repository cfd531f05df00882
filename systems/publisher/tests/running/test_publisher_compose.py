"""What `docker compose up` would start, without a Docker engine: the files are read, and each of their commands is run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time

import httpx
import pytest
from debian import tool
from deployed import DEPLOY, ROOT, compose, kubernetes
from processes import World, free_port
from publisher.settings import settings_of

from holdfast.vault import new_key
from tools.postgres import system_binaries, wheel_binaries
from tools.valkey import wheel_binary

GIVEN = {
    "POSTGRES_PASSWORD": "of-the-database",
    "DEVIANTART_CLIENT_ID": "4711",
    "DEVIANTART_CLIENT_SECRET": "of-the-application",
    "PUBLISHER_PUBLIC_URL": "https://publisher.example.org",
    "PUBLISHER_KEYS": new_key("compose"),
    "SMTP_URL": "smtps://publisher:secret@mail.example.org",
    "SMTP_FROM": "Publisher <publisher@example.org>",
}
OURS = ("migrate", "api", "worker")


def environment_of(service, **instead):
    return {name: str(value) for name, value in service["environment"].items()} | instead


def test_settings_of_the_files_are_those_of_the_program():
    """Production takes them, and each secret that is not given stops the start."""
    services = compose(GIVEN)
    for name in OURS:
        found = settings_of(environment_of(services[name]))
        assert (found.is_production, found.is_simulated) == (True, False)
    assert settings_of(environment_of(services["worker"])).health_host == "0.0.0.0"
    for name in GIVEN:
        with pytest.raises(KeyError, match=name):
            compose({key: value for key, value in GIVEN.items() if key != name})


def test_who_waits_for_whom_and_what_is_started_again():
    """P89, P93: health conditions, three workers, restart unless stopped, and the check of the original."""
    services = compose(GIVEN)
    assert services["worker"]["deploy"] == {"replicas": 3}
    for name, service in services.items():
        assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
        assert name in ("migrate", *OURS, "prometheus") or service["healthcheck"]["test"][0] == "CMD"
    for name in ("api", "worker"):
        service = services[name]
        assert {key: value["condition"] for key, value in service["depends_on"].items()} == {
            "database": "service_healthy", "redis": "service_healthy", "migrate": "service_completed_successfully",
        }  # fmt: skip
        check = {key: value for key, value in service["healthcheck"].items() if key != "test"}
        assert check == {"interval": "30s", "timeout": "10s", "retries": 3, "start_period": "40s"}
        assert service["stop_grace_period"] == "45s"  # longer than the 30 s in which it ends in order


def test_prometheus_takes_its_configuration_and_rules(tmp_path):
    shutil.copy(DEPLOY / "prometheus.yml", tmp_path)
    for mounted in compose(GIVEN)["prometheus"]["volumes"][1:3]:
        shutil.copy((DEPLOY / mounted.split(":")[0]).resolve(), tmp_path)
    command = [tool("promtool", "prometheus"), "check", "config", str(tmp_path / "prometheus.yml")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.count("SUCCESS") == 4


def test_kubernetes_runs_the_same_commands():
    containers = {}
    for each in kubernetes():
        if each["kind"] in ("Deployment", "Job"):
            pod = each["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"] is True
            containers |= {container["name"]: container for container in pod["containers"]}
            assert pod.get("terminationGracePeriodSeconds", 45) == 45
        if each["kind"] == "ConfigMap":
            settings_of(
                {**GIVEN, **each["data"], "DEVIANTART_BASE_URL": "https://www.deviantart.com"}
                | {"POSTGRES_PASSWORD": ""}
            )
    services = compose(GIVEN)
    assert {name: each["args"] for name, each in containers.items()} == {
        name: services[name]["command"] for name in OURS
    }
    worker = containers["worker"]
    paths = [worker[f"{probe}Probe"]["httpGet"]["path"] for probe in ("liveness", "readiness", "startup")]
    assert paths == ["/health", "/ready", "/startup"]


async def test_each_command_of_the_compose_file_is_run(postgres_url, own_valkey, simulator, tmp_path):
    """Tables, one API, three workers, their checks, what Prometheus asks for; and all of them leave in order."""
    services = compose(GIVEN)
    _servers_check_themselves(services, postgres_url, own_valkey)
    instead = {
        "DATABASE_URL": postgres_url, "REDIS_URL": own_valkey.url, "PUBLISHER_FILES": str(tmp_path / "files"),
        "PUBLISHER_HOST": "127.0.0.1", "HEALTH_CHECK_HOST": "127.0.0.1", "SMTP_URL": f"file:{tmp_path / 'mail'}",
    }  # fmt: skip
    world = World(tmp_path, postgres_url, **environment_of(services["migrate"], **instead))
    again = world.run(*services["migrate"]["command"])
    assert (again.returncode, "up to date" in again.stdout) == (0, True), again.stderr
    replicas = services["worker"]["deploy"]["replicas"]
    api = world.start(*services["api"]["command"])
    workers = [world.start(*services["worker"]["command"]) for _ in range(replicas)]
    started = [api, *workers]
    try:
        api.ready()
        for each in workers:
            ready = each.until(f"{each.probe_url}/ready").json()
            assert ready["redis"] == {"connected": True, "configured": True}
            _is_healthy(services["worker"], each.probe)
        _is_healthy(services["api"], api.port)
        _has_all_numbers(workers[0])
        _without_redis(own_valkey, api, workers[0])
        for each in started:
            each.signal()
        assert [each.ended() for each in started] == [0] * len(started), [
            each.log.read_text()[-600:] for each in started
        ]
    finally:
        for each in started:
            each.__exit__()


def _servers_check_themselves(services, postgres_url, valkey):
    """pg_isready as it is called there, at the server of the tests; Redis by the same word over its protocol."""
    [place] = re.findall(r"@([\d.]+):(\d+)/", postgres_url) or re.findall(r"//()[^/]*?:(\d+)/", postgres_url)
    binaries = wheel_binaries() or next(iter(system_binaries()))
    program, *options = services["database"]["healthcheck"]["test"][1:]
    command = [str(binaries / program), *options, "-h", place[0] or "127.0.0.1", "-p", place[1]]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    import redis

    assert services["redis"]["healthcheck"]["test"][1:] == ["valkey-cli", "ping"]
    assert redis.Redis.from_url(valkey.url).ping()
    server, *flags = services["redis"]["command"]
    assert server == "valkey-server"
    port = free_port()
    with subprocess.Popen(
        [str(wheel_binary()), *flags, "--port", str(port), "--dir", str(valkey.folder), "--daemonize", "no"],
        stdout=subprocess.DEVNULL,
    ) as own:
        try:
            client = redis.Redis(port=port)
            _until(lambda: _pings(client))
            kept = client.config_get("appendonly") | client.config_get("maxmemory-policy")
            assert kept == {"appendonly": "yes", "maxmemory-policy": "noeviction"}
        finally:
            own.terminate()


def _pings(client):
    import redis

    try:
        return client.ping()
    except redis.ConnectionError:
        return False


def _until(fact):
    end = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.05)


def _is_healthy(service, port):
    """Its check, at the port that it has here."""
    kind, program, *options = service["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "holdfast")
    here = [re.sub(r":\d+", f":{port}", each) for each in options]
    asked = subprocess.run(
        [sys.executable, "-m", "holdfast", *here], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert asked.returncode == 0, asked.stderr


def _has_all_numbers(worker):
    """Whatever the rules ask for is there to be scraped."""
    config = (DEPLOY / "prometheus.yml").read_text()
    assert "metrics_path: /metrics" in config
    text = worker.until(f"{worker.probe_url}/metrics").text
    rules = (DEPLOY / "publisher.rules.yml").read_text()
    asked = {
        name.removesuffix("_sum").removesuffix("_count")
        for name in re.findall(r"\b(?:holdfast|publisher)_\w+", rules)
    }
    assert len(asked) >= 5
    missing = [name for name in asked if f"# TYPE {name}" not in text]
    assert not missing


def _without_redis(valkey, api, worker):
    """Nobody becomes unready. Sessions are kept there and nowhere else: so pages say that they cannot be had, and when to try again."""
    valkey.stop()
    _until(lambda: not worker.until(f"{worker.probe_url}/ready").json()["redis"]["connected"])
    assert api.until(f"{api.url}/probes/ready").status_code == 200
    answer = httpx.get(f"{api.url}/api/account", cookies={"__Host-session": "x" * 43}, timeout=30)
    assert answer.status_code == 503, answer.text
