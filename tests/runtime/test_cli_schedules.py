"""`holdfast schedules` and `locks` on both stores."""

from datetime import UTC, datetime

from cli_kit import audit

from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob


async def tick(store, name, nominal):
    return (await store.schedules.tick(name, nominal, NewJob(id=new_id(), task=name))).id


async def lease(store, name, ttl=60.0):
    return await store.leases.acquire(name, owner="w1", ttl=ttl)


# --- schedules ---


def test_schedules_with_their_last_tick_and_next_fire(shop, on_store):
    job = on_store(tick, "report.nightly", 1_794_706_200.0)
    nightly, warm = shop.json("schedules")["schedules"]
    assert (nightly["schedule"], nightly["task"], nightly["missed"]) == ("report.nightly",) * 2 + ("latest",)
    assert (nightly["last"], nightly["last_job"]) == (1_794_706_200.0, job)
    assert nightly["next"] > datetime.now(UTC).timestamp()
    assert (warm["last"], warm["next"] % 300) == (None, 0)
    assert shop("schedules", "list") == 0
    assert "30 2 * * * (Europe/Zurich)" in shop.out
    assert "never" in shop.out


def test_the_next_ten_fires_in_the_zone_and_in_utc(shop):
    shown = shop.json("schedules", "show", "report.nightly")
    assert (shown["zone"], len(shown["fires"])) == ("Europe/Zurich", 10)
    assert shop("schedules", "show", "report.nightly") == 0
    header, *rows = shop.out.splitlines()[-11:]
    assert header.split() == ["Europe/Zurich", "UTC", "FIRES"]
    for row in rows:
        there, utc, *_ = row.split()
        assert datetime.fromisoformat(there) == datetime.fromisoformat(utc)
        assert "T02:30:00+" in there
    assert shop("schedules", "show", "cache.warm") == 0
    assert "UTC" in shop.out
    assert shop("schedules", "show", "nope") == 1
    assert "There are: report.nightly, cache.warm." in shop.err


def test_reset_forgets_the_last_tick_and_leaves_an_audit_row(shop, on_store):
    on_store(tick, "report.nightly", 3_000_000_000.0)  # by a clock that was wrong
    assert shop("schedules", "reset", "report.nightly") == 0
    assert shop.json("schedules", "show", "report.nightly")["last"] is None
    [(actor, _)] = on_store(audit, "schedule:report.nightly")
    assert actor == "ada@shop"
    assert shop("schedules", "reset", "report.nightly") == 1
    assert "has no last tick" in shop.err
    assert shop.json("schedules", "reset", "nope") == {"schedule": "nope", "done": False}


# --- locks ---


def test_leases_that_are_held(shop, on_store):
    assert shop("locks") == 0
    assert shop.out == "No lease is held.\n"
    held = on_store(lease, "report:2026-11")
    on_store(lease, "tidy")
    report, tidy = shop.json("locks")["locks"]
    assert report == {"name": "report:2026-11", "owner": "w1", "token": held.token, "until": held.until}
    assert tidy["name"] == "tidy"
    assert shop("locks", "--limit", "1", "list") == 0
    assert "report:2026-11" in shop.out
    assert "tidy" not in shop.out


def test_a_lease_is_stolen_with_a_reason(shop, on_store):
    on_store(lease, "report")
    assert shop("locks", "steal", "report", "--reason", "w1 is gone") == 0
    assert on_store(audit, "lease:report") == [("ada@shop", "lease.stolen")]
    assert shop.json("locks") == {"locks": []}
    assert shop("locks", "steal", "report", "--reason", "again") == 1
    assert "Nobody holds 'report'" in shop.err
