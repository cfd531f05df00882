"""The files of deploy/ without a Docker engine: read, and what they ask of the program is asked of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import admissions.main
import pytest
import yaml
from admissions.settings import settings_of
from debian import tool

from holdfast.testing import drain
from tools import system_lock

ROOT = Path(__file__).parents[4]
DEPLOY = ROOT / "systems/admissions/deploy"
GIVEN = {
    "POSTGRES_PASSWORD": "of-the-database",
    "STRIPE_API_KEY": "sk_live_of-the-account",
    "STRIPE_WEBHOOK_SECRET": "whsec_of-the-account",
    "ADMISSIONS_PUBLIC_URL": "https://apply.example.org",
    "SMTP_URL": "smtps://admissions:secret@mail.example.org",
    "SMTP_FROM": "Admissions <admissions@example.org>",
}
OURS = ("migrate", "api", "worker")


def compose(given=GIVEN):
    """The services, as they are with these variables; one that must be given and is not is a KeyError."""

    def value(found):
        name, _, default = found[1].partition(":")
        if name not in given and default.startswith("?"):
            raise KeyError(name)
        return given.get(name, default.removeprefix("-"))

    def told(found):
        match found:
            case dict():
                return {name: told(each) for name, each in found.items()}
            case list():
                return [told(each) for each in found]
            case str():
                return re.sub(r"\$\{([^}]+)\}", value, found)
        return found

    return told(yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"])


def test_production_takes_what_the_compose_file_says():
    services = compose()
    for name in OURS:
        found = settings_of({key: str(value) for key, value in services[name]["environment"].items()})
        assert (found.is_production, found.is_simulated, found.clamd) == (True, False, "clamd:3310")
    assert settings_of(services["worker"]["environment"]).health_host == "0.0.0.0"


@pytest.mark.parametrize("name", sorted(GIVEN))
def test_what_is_secret_must_be_given(name):
    with pytest.raises(KeyError, match=name):
        compose({key: value for key, value in GIVEN.items() if key != name})


def test_replicas_and_who_waits_for_whom():
    services = compose()
    assert [services[name]["deploy"]["replicas"] for name in ("api", "worker")] == [2, 3]
    for name in ("api", "worker"):
        assert {key: each["condition"] for key, each in services[name]["depends_on"].items()} == {
            "database": "service_healthy", "redis": "service_healthy", "migrate": "service_completed_successfully",
        }  # fmt: skip
        assert services[name]["stop_grace_period"] == "45s"


def test_each_command_is_one_of_the_program():
    known = {name for name, _, _ in admissions.main.COMMANDS}
    services = compose()
    pods = [
        container
        for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
        if each["kind"] in ("Deployment", "Job")
        for container in each["spec"]["template"]["spec"]["containers"]
    ]
    assert {each["name"]: each["args"] for each in pods} == {name: services[name]["command"] for name in OURS}
    assert {word for name in OURS for word in services[name]["command"]} <= known
    assert all(
        services[name]["healthcheck"]["test"][:3] == ["CMD", "holdfast", "health"]
        for name in ("api", "worker")
    )


def test_the_commands_run(tmp_path):
    """migrate, and settings, as the image calls them."""
    for command in (["migrate"], ["settings"]):
        done = subprocess.run(
            [sys.executable, "-m", "admissions.main", *command],
            env={"PYTHONPATH": ":".join(sys.path), "DATABASE_URL": f"sqlite:///{tmp_path / 'deployed.db'}"},
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_the_lock_is_what_the_tool_makes():
    assert (DEPLOY / "requirements.txt").read_text() == system_lock.locked("admissions"), (
        "run `make lock-systems`"
    )


def test_the_image_has_versions_and_no_rights():
    steps = [
        line.split(" ", 1)
        for line in (DEPLOY / "Dockerfile").read_text().splitlines()
        if line and line[0].isupper()
    ]
    assert all(":" in said and "latest" not in said for name, said in steps if name == "FROM")
    assert [said for name, said in steps if name == "USER"] == ["10001:10001"]
    assert any("--require-hashes" in said for name, said in steps if name == "RUN")
    copied = [
        word for name, said in steps if name == "COPY" and "--from" not in said for word in said.split()[:-1]
    ]
    assert all((ROOT / each).exists() for each in copied)
    assert [said for name, said in steps if name == "ENTRYPOINT"] == ['["admissions"]']


def test_prometheus_takes_configuration_and_rules(tmp_path):
    shutil.copy(DEPLOY / "prometheus.yml", tmp_path)
    for mounted in compose()["prometheus"]["volumes"][1:3]:
        shutil.copy((DEPLOY / mounted.split(":")[0]).resolve(), tmp_path)
    command = [tool("promtool", "prometheus"), "check", "config", str(tmp_path / "prometheus.yml")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


async def test_each_stage_is_in_the_metrics_that_the_rules_ask_for(portal, stripe_simulator, box):
    """A71: runs and times of each stage, by its name."""
    import admissions_kit as kit

    from holdfast.observe import metrics

    application = await kit.submitted()
    await drain(portal)
    await kit.pay(application)
    await drain(portal)
    text = await scraped(metrics(portal))
    asked = set(re.findall(r"\bholdfast_\w+", (DEPLOY / "admissions.rules.yml").read_text()))
    missing = [name for name in asked if f"# TYPE {re.sub('_(sum|count)$', '', name)} " not in text]
    assert len(asked) >= 5
    assert not missing


async def scraped(app):
    import httpx

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://here") as client:
        return (await client.get("/")).text
