"""Stripe's errors, in the form in which it answers them."""

from __future__ import annotations

from typing import Any


class Failed(Exception):
    """`kept` says whether an idempotency key keeps this answer: what was refused before it began is not kept."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        *,
        kept: bool = False,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(message)
        self.status, self.kept, self.headers = status, kept, headers or {}
        self.body = {"error": {"type": kind, "message": message, **more}}


def invalid(message: str, param: str | None = None, code: str = "parameter_invalid") -> Failed:
    return Failed(400, "invalid_request_error", message, code=code, param=param)


def missing(kind: str, found: str) -> Failed:
    return Failed(
        404, "invalid_request_error", f"No such {kind}: '{found}'", code="resource_missing", param="id"
    )


def unauthorized() -> Failed:
    return Failed(401, "invalid_request_error", "Invalid API Key provided.")


def too_many() -> Failed:
    headers = {"Stripe-Rate-Limited-Reason": "global-rate"}
    return Failed(
        429, "invalid_request_error", "Request rate limit exceeded.", code="rate_limit", headers=headers
    )


def broken() -> Failed:
    """A fault of Stripe's own, after it has begun: a key keeps it."""
    return Failed(500, "api_error", "Something went wrong on our end.", kept=True)


def declined(intent: dict[str, Any], code: str, message: str) -> Failed:
    return Failed(
        402, "card_error", message, kept=True, code="card_declined", decline_code=code, payment_intent=intent
    )


def key_in_use() -> Failed:
    return Failed(
        409,
        "idempotency_error",
        "There is currently another in-progress request using this key.",
        code="idempotency_key_in_use",
    )


def key_of_another(key: str) -> Failed:
    return Failed(
        400,
        "idempotency_error",
        "Keys for idempotent requests can only be used with the same parameters they were first used with. "
        f"Try using a key other than '{key}' if you meant to execute a different request.",
    )
