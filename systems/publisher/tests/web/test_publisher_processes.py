"""Real processes: two APIs that share everything, stopping in order, and the command line."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time

import httpx
import pytest
from processes import PEOPLE, Person, World
from visitors import picture


@pytest.fixture
def world(simulator, tmp_path):
    yield World(tmp_path, f"sqlite:///{tmp_path / 'publisher.db'}")
    while PEOPLE:
        PEOPLE.pop().http.close()


def test_two_processes_behind_one_address_are_one(world):
    """Any process answers any request of a login, an upload and its repetition; one is killed between two requests."""
    with world.start("api") as one, world.start("api") as two:
        one.ready(), two.ready()
        ada = Person(one.url, two.url).log_in()
        first = ada.upload(**{"idempotency-key": "a-1"})
        again = ada.upload(**{"idempotency-key": "a-1"})
        assert (first.status_code, again.content) == (201, first.content)
        assert again.headers["idempotent-replayed"] == "true"
        [file] = first.json()["files"]
        seen = [ada.ask("GET", f"/api/posts/{file['post_id']}/files").json()[0]["id"] for _ in range(2)]
        assert seen == [file["file_id"]] * 2
        one.kill()
        left = Person(two.url)
        left.http = ada.http
        assert left.ask("GET", "/api/account").json()["username"] == "ada-arc"
        with world.start("api") as three:
            three.ready()
            assert left.ask("POST", "/logout").status_code == 303
            left._urls = [three.url]
            assert left.ask("GET", "/api/account").status_code == 401, "at once, in every process"


def test_the_cookie_of_a_session_is_kept_from_scripts_and_other_sites(world):
    with world.start("api", PUBLISHER_PUBLIC_URL="https://publisher.example.org") as safe:
        safe.ready()
        answer = httpx.get(f"{safe.url}/login")
        [cookie] = [
            value
            for name, value in answer.headers.multi_items()
            if name == "set-cookie" and "session" in value
        ]
        assert cookie.startswith("__Host-session=")
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"secure", "httponly", "samesite=lax", "path=/"} <= parts
        assert not any(part.startswith("domain") for part in parts)
        assert answer.headers["cache-control"].startswith(("private", "no-store"))
        assert "unsafe" not in answer.headers["content-security-policy"]


def test_an_api_that_is_asked_to_end_answers_what_it_has_begun(world):
    with world.start("api") as api:
        ada = Person(api.ready().url).log_in()
        found = []
        body, begun = slow_upload()
        headers = {"content-type": "multipart/form-data; boundary=x", **ada.http.headers}
        thread = threading.Thread(
            target=lambda: found.append(
                httpx.post(
                    f"{api.url}/api/uploads",
                    content=body,
                    headers=headers,
                    cookies=ada.http.cookies,
                    timeout=30,
                )
            )
        )
        thread.start()
        begun.wait(20)
        at = time.monotonic()
        api.signal()
        thread.join(30)
        assert [each.status_code for each in found] == [201]
        assert api.ended() == 0
        assert time.monotonic() - at < 30


def slow_upload():
    """A body whose second half comes when the process was asked to end."""
    begun = threading.Event()
    content = picture("slow", (300, 300))
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="s.png"\r\n\r\n'

    def pieces():
        yield head + content[:100]
        begun.set()
        time.sleep(1)  # it is asked to end meanwhile
        yield content[100:] + b"\r\n--x--\r\n"

    return pieces(), begun


def test_a_second_signal_ends_it_at_once(world):
    with world.start("api") as api:
        ada = Person(api.ready().url).log_in()
        ready, stop = threading.Event(), threading.Event()

        def pieces():
            yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="s.png"\r\n\r\n'
            ready.set()
            stop.wait(30)

        def send():
            headers = {"content-type": "multipart/form-data; boundary=x", **ada.http.headers}
            with pytest.raises(httpx.TransportError):
                httpx.post(
                    f"{api.url}/api/uploads",
                    content=pieces(),
                    headers=headers,
                    cookies=ada.http.cookies,
                    timeout=30,
                )

        thread = threading.Thread(target=send)
        thread.start()
        ready.wait(20)
        api.signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            api._process.wait(1)  # it waits for the upload
        api.signal(signal.SIGTERM)
        assert api.ended() == 130
        stop.set()
        thread.join(30)


def test_all_starts_both_and_ends_both(world):
    with world.start("all") as both:
        both.ready()
        health = both.until(f"{both.probe_url}/health").json()
        assert (health["status"], health["service"]) == ("healthy", "publisher")
        assert health["uptime"] >= 0
        ready = both.until(f"{both.probe_url}/ready").json()
        assert (ready["status"], ready["service"], ready["worker"]) == (
            "ready",
            "publisher",
            {"running": True, "activeJobs": 0},
        )
        assert ready["redis"] == {"connected": False, "configured": False}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", ready["timestamp"])
        assert "holdfast_worker_running_jobs" in httpx.get(f"{both.probe_url}/metrics").text
        assert httpx.get(f"{both.url}/metrics").status_code == 404, "numbers are not for the public"
        children = set(_children(both.pid))
        assert len(children) == 2
        ada = Person(both.url).log_in()
        [file] = ada.upload().json()["files"]
        _until_preview(ada, file["file_id"])
        both.signal(signal.SIGINT)
        assert both.ended() == 0
        assert not [pid for pid in children if _is_alive(pid)]


def test_half_a_publisher_ends_whole(world):
    with world.start("all") as both:
        both.ready()
        both.until(f"{both.probe_url}/ready")
        children = _children(both.pid)
        _kill(children[0])
        assert both.ended() != 0
        assert not [pid for pid in children if _is_alive(pid)]


def test_children_end_with_who_started_them(world):
    with world.start("all") as both:
        both.ready()
        both.until(f"{both.probe_url}/ready")
        children = _children(both.pid)
        both.kill()
        end = time.monotonic() + 40
        while any(_is_alive(pid) for pid in children):
            assert time.monotonic() < end
            time.sleep(0.05)


def _until_preview(person, file_id):
    """A job has made it: so the worker works."""
    end = time.monotonic() + 40
    while person.ask("GET", f"/api/files/{file_id}/preview").status_code != 200:
        assert time.monotonic() < end
        time.sleep(0.1)


def _children(pid):
    import psutil

    return [each.pid for each in psutil.Process(pid).children()]


def _is_alive(pid):
    import psutil

    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _kill(pid):
    import os

    os.kill(pid, signal.SIGKILL)


# --- the command line ---


def test_wrong_settings_stop_the_start_by_name(world):
    for command, name, value, says in (
        ("api", "PUBLISHER_PORT", "many", "'many' is no whole number"),
        ("worker", "PUBLISHER_CONCURRENCY", "0", "0 is too small"),
        ("all", "PUBLISHER_CONCURENCY", "5", "PUBLISHER_CONCURRENCY is the nearest"),
        ("settings", "NODE_ENV", "production", "PUBLISHER_PUBLIC_URL"),
    ):
        ended = world.run(command, **{name: value})
        assert ended.returncode == 2, (name, command, ended.stderr)
        assert says in ended.stderr
        assert "Traceback" not in ended.stderr


def test_tables_are_brought_up_to_date_and_twice_is_the_same(world):
    again = world.run("migrate")
    assert (again.returncode, again.stderr) == (0, "")
    assert "were up to date" in again.stdout


def test_settings_in_force_are_shown_without_secrets(world):
    shown = world.run(
        "settings", DEVIANTART_CLIENT_SECRET="very-secret", DATABASE_URL="postgresql://a:pass-word@h/db"
    )
    assert shown.returncode == 0, shown.stderr
    assert "very-secret" not in shown.stdout
    assert "pass-word" not in shown.stdout
    assert re.search(r"PUBLISHER_CONCURRENCY +5  \(default\)", shown.stdout)
    assert world.environment["PUBLISHER_KEYS"] not in shown.stdout
