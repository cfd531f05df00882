"""DeviantArt's error answers: the status, the type that programs read, and the sentence that they must not read."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response


class Failed(Exception):
    """Ends a call with this answer."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def error(
    status: int,
    kind: str,
    description: str,
    *,
    code: int | None = None,
    details: dict[str, str] | None = None,
) -> Failed:
    body: dict[str, Any] = {"error": kind, "error_description": description, "status": "error"}
    if code is not None:
        body["error_code"] = code
    if details is not None:
        body["error_details"] = details
    return Failed(JSONResponse(body, status))


def invalid(description: str, *, code: int | None = None, **details: str) -> Failed:
    return error(400, "invalid_request", description, code=code, details=details or None)


def unauthorized(description: str = "Invalid token.") -> Failed:
    return error(401, "invalid_token", description)


EXPIRED = (
    "Expired oAuth2 user token. The client should request a new one with an access code or a refresh token."
)


def expired() -> Failed:
    return unauthorized(EXPIRED)


def user_limit() -> Failed:
    return error(429, "user_api_threshold", "User request limit reached.")


def app_limit() -> Failed:
    return error(429, "application_api_threshold", "Client request limit reached.")


def server_error() -> Failed:
    return error(500, "server_error", "Internal Server Error.")


def forbidden_page() -> Failed:
    """As its edge answers who sends no User-Agent, or asks for no compression."""
    return Failed(
        HTMLResponse("<html><head><title>403 Forbidden</title></head><body>Forbidden</body></html>", 403)
    )
