"""The flags of the portal, each with what stays true while it is off. None switches a promise off: keys, outbox and rows stay."""

from __future__ import annotations

from collections.abc import Mapping

STATUS_CACHE = "status-cache"
LIVE_PROGRESS = "live-progress"
SCANNER = "scanner"
ACKNOWLEDGEMENT = "acknowledgement-mail"
NEW_SUBMISSIONS = "new-submissions"

# All are on unless somebody has set them.
FLAGS: Mapping[str, str] = {
    STATUS_CACHE: "The status is read from its row each time.",
    LIVE_PROGRESS: "Pages show what is so when they are loaded, and do not change by themselves.",
    SCANNER: "Every file is looked at by the built-in checker, and each document says which one it was.",
    ACKNOWLEDGEMENT: "No mail acknowledges a submission; the receipt is on its page.",
    NEW_SUBMISSIONS: "Nothing new is taken, and the page says so; what was submitted goes on.",
}
