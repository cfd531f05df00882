"""Names that plans, programs and checkers of the kind `alerts` share."""

from __future__ import annotations

KIND = "login"  # of what the program raises
TASK = "holdfast.alerts.on_alert:tell"
TOLD = "told an alert"
NEVER = "never"  # how causes begin whose transactions are rolled back
