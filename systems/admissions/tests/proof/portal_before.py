"""The seed's way: one request that validates, verifies, pays and mails before it answers. The outside is the same, and so are the limits."""

from __future__ import annotations

import asyncio
import sys
from email.message import EmailMessage

import aiosmtplib
import uvicorn
from admissions.core import settings
from admissions.outside.payments import Payments
from admissions.outside.scanning import Clamd
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

VALIDATES = float(sys.argv[2])  # seconds
_payments = Payments(settings)
_scanner = Clamd(settings.clamd or "")
_places = {
    "verify": asyncio.Semaphore(settings.verify_at_once),
    "pay": asyncio.Semaphore(settings.pay_at_once),
    "mail": asyncio.Semaphore(settings.mail_at_once),
}


async def apply(request: Request) -> Response:
    """All of it, or an error. What was done before an error stays done."""
    async with request.form() as form:
        content = await form["transcript"].read()
    key = request.headers["idempotency-key"]
    await asyncio.sleep(VALIDATES)
    async with _places["verify"]:
        await _scanner.scan(_pieces(content))
    async with _places["pay"]:
        intent = await asyncio.to_thread(_payments.create, f"before:{key}", 7500, "usd", f"before:{key}")
    async with _places["mail"]:
        await _mail(key, intent.id)
    return JSONResponse({"applicationId": key}, 200)


async def _pieces(content: bytes):
    yield content


async def _mail(key: str, intent: str) -> None:
    message = EmailMessage()
    message["From"], message["To"] = "admissions@localhost", f"before-{key}@example.org"
    message["Subject"], message["Message-ID"] = f"Before {key}", f"<{intent}@localhost>"
    message.set_content("Thank you.")
    host, _, port = settings.mail_url.removeprefix("smtp://").partition(":")
    await aiosmtplib.send(message, hostname=host, port=int(port), timeout=10, start_tls=False)


async def broken(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)[:200]}, 500)


if __name__ == "__main__":
    app = Starlette(
        routes=[
            Route("/applications", apply, methods=["POST"]),
            Route("/probes/ready", lambda _: Response()),
        ],
        exception_handlers={Exception: broken},
    )
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
