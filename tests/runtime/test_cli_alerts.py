"""`holdfast alerts`, and what `holdfast doctor` says of them."""

from __future__ import annotations

import asyncio

from holdfast import Holdfast
from holdfast.observe import AlertSettings
from holdfast.runtime.alerting import QUEUE
from holdfast.runtime.cli import alerting, main
from holdfast.store.alert_records import AlertRecord
from holdfast.testing.conformance.dead import die

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


def alert(**changes):
    said = {
        "id": "a1",
        "kind": "dead",
        "cause": "mail.send",
        "number": 12_000,
        "opened_at": 1.0,
        "told_at": 2.0,
    }
    return AlertRecord(**{**said, "told_number": 3, **changes})


def test_alerts_are_listed_open_ones_first(tmp_path, capsys):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    assert main(["migrate", "--url", url]) == 0
    capsys.readouterr()
    assert main(["alerts", "--url", url]) == 0
    assert "No alert is open" in capsys.readouterr().out

    async def put():
        async with Holdfast(url) as hf:
            await hf.store.alerts.write([alert(id="a2", cause="mail.old", ended_at=9.0), alert()])

    asyncio.run(put())
    assert main(["alerts", "list", "--url", url]) == 0
    shown = capsys.readouterr().out
    assert shown.index("mail.send") < shown.index("mail.old")
    assert "12,000" in shown
    assert main(["alerts", "--limit", "1", "--json", "--url", url]) == 0
    assert '"mail.send"' in (shown := capsys.readouterr().out)
    assert "mail.old" not in shown


async def test_doctor_tells_whether_anybody_is_told(url):
    def program(webhook):
        return Holdfast(url, alerts=AlertSettings(webhook=webhook, secret=SECRET))

    async with Holdfast(url) as hf:
        assert await alerting.examine(hf) == []
    async with program("http://127.0.0.1:9/x") as hf:
        [found] = await alerting.examine(hf)
        assert (found.level, found.found) == ("ok", "Alerts are told to: webhook.")
        await die(hf.store, task="holdfast.alerts.webhook", queue=QUEUE)
        [_, found] = await alerting.examine(hf)
        assert (found.level, "1 (holdfast.alerts.webhook)" in found.found) == ("warn", True)
        assert f"--queue {QUEUE}" in (found.todo or "")
    async with program("http://ops.example.org/x") as hf:
        found = (await alerting.examine(hf))[0]
        assert found.level == "warn"
