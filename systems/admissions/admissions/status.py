"""The read model of an application: how it stands, in one row without joins, made of events alone."""

from __future__ import annotations

from typing import Any

from admissions.core import hf
from admissions.domain.states import PROGRESS, State
from holdfast import Event

# The state that each event leads to; others leave it.
_STATES = {
    "application.submitted": State.SUBMITTED,
    "document.uploaded": State.VERIFYING,
    "document.verified": State.VERIFIED,
    "document.refused": State.NEEDS_FILES,
    "payment.opened": State.AWAITING_PAYMENT,
    "payment.completed": State.PAID,
    "email.sent": State.MAILED,
    "application.completed": State.COMPLETED,
    "application.failed": State.FAILED,
    "application.withdrawn": State.WITHDRAWN,
}
_PAYMENTS = {"payment.opened": "open", "payment.completed": "paid", "application.withdrawn": "withdrawn"}


@hf.view("application_view", on=["application.*", "document.*", "payment.*", "email.*"], key="application_id")
def application_view(row: dict[str, Any] | None, event: Event[dict[str, Any]]) -> dict[str, Any]:
    """What `GET /applications/{id}/status` answers. Progress never falls, and nothing in it is guessed."""
    data = event.data
    found = dict(row or new(data["application_id"], event.time.timestamp()))
    state = _STATES.get(event.type)
    if state is not None:
        found["status"] = str(state)
        found["progress"] = max(found["progress"], PROGRESS[state])
    found["paymentStatus"] = _PAYMENTS.get(event.type, found["paymentStatus"])
    match event.type:
        case "document.uploaded":
            found["documentsTotal"] += len(data["documents"]) - data.get("replaces", 0)
            found["documentsRejected"] = max(0, found["documentsRejected"] - data.get("replaces", 0))
        case "document.verified":
            found["documentsClean"], found["documentsRejected"] = data["clean"], 0
        case "document.refused":
            found["documentsClean"], found["documentsRejected"] = data["clean"], len(data["refused"])
        case "email.sent":
            found["emailSent"] = True
        case "application.submitted":
            found["number"], found["createdAt"] = data["number"], data["at"]
    found["documentsVerified"] = 0 < found["documentsClean"] == found["documentsTotal"]
    found["updatedAt"] = event.time.timestamp()
    return found


def new(application_id: str, at: float) -> dict[str, Any]:
    return {
        "id": application_id,
        "number": "",
        "status": str(State.SUBMITTED),
        "progress": 0,
        "createdAt": at,
        "updatedAt": at,
        "documentsVerified": False,
        "documentsTotal": 0,
        "documentsClean": 0,
        "documentsRejected": 0,
        "paymentStatus": "none",
        "emailSent": False,
    }
