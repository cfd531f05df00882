"""Names of objects. None is used twice, so whoever comes late with a copy or a removal finds nothing that is needed.

incoming/TENANT/ID         a client sends it by a link; it may send it again until the link ends
staging/TENANT/ID.0        bytes that nobody has committed, or not yet moved on
kept/TENANT/ID.1           a blob that may be read
quarantine/TENANT/ID.2     one that may not; the number grows with each move
"""

from __future__ import annotations

from holdfast.blobs.errors import BlobKeyError
from holdfast.blobs.keys import check_key
from holdfast.kernel.ids import new_id
from holdfast.kernel.show import show
from holdfast.store.blob_records import BlobState

INCOMING, STAGING, KEPT, QUARANTINE = "incoming", "staging", "kept", "quarantine"
_PLACES = (STAGING, KEPT, QUARANTINE)
_BELONGS = {BlobState.KEPT: KEPT, BlobState.QUARANTINED: QUARANTINE}


def staged_name(tenant: str) -> str:
    return f"{STAGING}/{tenant}/{new_id()}.0"


def incoming_name(tenant: str, upload: str) -> str:
    """Of an id that a client gave back: it names nothing outside of its tenant's own."""
    if "/" in str(upload):
        raise BlobKeyError(f"{show(upload)} is no id of an upload.")
    return f"{INCOMING}/{tenant}/{check_key(upload, 'id')}"


def home_of(state: BlobState, place: str) -> str:
    """Where an object of a blob in this state belongs: its own name, or the one that it is to be moved to."""
    area, tenant, rest = place.split("/")
    wanted = _BELONGS.get(state, area)
    if wanted == area:
        return place
    name, _, number = rest.rpartition(".")
    return f"{wanted}/{tenant}/{name}.{int(number) + 1}"


def leftovers(place: str) -> list[str]:
    """Where it was before, and where others may have begun to move it."""
    _, tenant, rest = place.split("/")
    name, _, number = rest.rpartition(".")
    found = [f"{area}/{tenant}/{name}.{each}" for each in range(int(number) + 1) for area in _PLACES]
    return [each for each in found if each != place]
