"""Stripe by its official client: each call with its key, typed answers, and errors sorted by what they mean for the next call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
import stripe

from admissions.outside.errors import Declined, Passing, Refused, Slowed, Spoiled, Uncertain
from admissions.settings import Settings

logging.getLogger("stripe").setLevel(logging.WARNING)  # else it tells each call
_T = TypeVar("_T")
# Words for an applicant, by Stripe's codes; nobody else's words are shown.
WORDS = {
    "insufficient_funds": "The bank says that there is not enough money.",
    "expired_card": "The card has expired.",
    "incorrect_number": "The card number is not right.",
    "incorrect_cvc": "The security code is not right.",
}
_TOLERANCE = 300  # seconds
_USUAL = "The bank did not say why."
_KEYS = 12  # for one call, one after the other: Stripe keeps a 500 as its answer to a key for a day


class Intent(msgspec.Struct, frozen=True):
    """One intent to pay, as it stands."""

    id: str
    status: str
    amount: int
    currency: str
    received: int
    charge: str | None
    application_id: str
    declined: str = ""  # the code of the last card
    refunded: int = 0  # only where the charge was asked for, too


class Page(msgspec.Struct, frozen=True):
    """Of Stripe's list, the newest first."""

    intents: list[Intent]
    more: bool


class Refund(msgspec.Struct, frozen=True):
    id: str
    intent: str
    amount: int
    key: str = ""  # of the call that made it


class Payments:
    """One for each process. Its calls run in threads, where a guard's timeout cannot cut them off: the client's own can."""

    def __init__(self, settings: Settings) -> None:
        self._client = stripe.StripeClient(
            settings.stripe_key.reveal(),
            base_addresses={"api": settings.stripe_url},
            max_network_retries=0,  # the guard and the job repeat, and count what they repeat
            http_client=stripe.RequestsClient(timeout=settings.stripe_timeout_s * 0.9),
        )

    def create(self, application_id: str, amount: int, currency: str, key: str) -> Intent:
        """No money moves. The same key gives the same intent."""
        params: Any = {
            "amount": amount,
            "currency": currency,
            "payment_method_types": ["card"],
            "metadata": {"application": application_id},
        }
        return _intent(_by_key(partial(self._client.v1.payment_intents.create, params), key))

    def method(self, number: str, month: int, year: int, cvc: str) -> str:
        """A token for a card; only for trying out: numbers of real cards must not come here."""
        card: Any = {"number": number, "exp_month": month, "exp_year": year, "cvc": cvc}
        made = _asked(partial(self._client.v1.payment_methods.create, {"type": "card", "card": card}))
        return str(made.id)

    def confirm(self, intent: str, method: str, key: str) -> Intent:
        """Takes the money, once for each intent, whatever the key. Raises Declined when the bank says no."""
        params: Any = {"payment_method": method}

        def done() -> Intent | None:
            found = self.look(intent)
            return found if found.status == "succeeded" else None

        return _by_key(
            lambda options: _intent(self._client.v1.payment_intents.confirm(intent, params, options)),
            key,
            done,
        )

    def look(self, intent: str) -> Intent:
        return _intent(_asked(partial(self._client.v1.payment_intents.retrieve, intent)))

    def made(self, since: int, after: str) -> Page:
        """Intents made since then, with what was given back of each; `after` the last one of the page before."""
        params: Any = {"limit": 100, "created": {"gte": since}, "expand": ["data.latest_charge"]}
        params |= {"starting_after": after} if after else {}
        found = _asked(partial(self._client.v1.payment_intents.list, params))
        return Page([_intent(each) for each in found.data], found.has_more)

    def cancel(self, intent: str, key: str) -> Intent:
        return _intent(
            _asked(partial(self._client.v1.payment_intents.cancel, intent, {}, {"idempotency_key": key}))
        )

    def refund(self, intent: str, amount: int, key: str) -> Refund:
        """Its key stands at the refund, so that one which was made under an answer of 500 is found."""
        params: Any = {
            "payment_intent": intent,
            "amount": amount,
            "reason": "requested_by_customer",
            "metadata": {"key": key},
        }

        def done() -> Refund | None:
            return next((each for each in self.refunds(intent) if each.key == key), None)

        return _by_key(lambda options: _refund(self._client.v1.refunds.create(params, options)), key, done)

    def refunds(self, intent: str) -> list[Refund]:
        found = _asked(partial(self._client.v1.refunds.list, {"payment_intent": intent, "limit": 100}))
        return [_refund(each) for each in found.data]


class Thing(msgspec.Struct, frozen=True):
    """What an event is about."""

    object: str
    id: str = ""
    payment_intent: str | None = None

    @property
    def intent(self) -> str | None:
        """None: a charge that was made without one."""
        return self.id if self.object == "payment_intent" else self.payment_intent


class Content(msgspec.Struct, frozen=True):
    object: Thing


class WebhookEvent(msgspec.Struct, frozen=True):
    id: str
    type: str
    data: Content


def event_of(body: bytes, signature: str, secret: str) -> WebhookEvent:
    """A webhook's event; raises Refused when it is not Stripe's, or too old."""
    try:
        stripe.WebhookSignature.verify_header(body.decode(), signature, secret, _TOLERANCE)
        return msgspec.json.decode(body, type=WebhookEvent)
    except (ValueError, RecursionError, stripe.SignatureVerificationError) as error:
        raise Refused(str(error)) from None


def signed_at(signature: str) -> float:
    """The time in a signature: the client lets those of the future pass."""
    for part in signature.split(","):
        name, _, value = part.partition("=")
        if name.strip() == "t" and value.strip().isdecimal():
            return float(value)
    raise Refused("The signature has no time.")


def words_of(code: str) -> str:
    return WORDS.get(code, _USUAL)


def _by_key(call: Callable[[Any], _T], key: str, done: Callable[[], _T | None] = lambda: None) -> _T:
    """The call with its key. Where Stripe keeps a 500 for it, what was done is looked up, and else another key is taken."""
    for number in range(_KEYS):
        options = {"idempotency_key": f"{key}-{number}" if number else key}
        try:
            return _asked(partial(call, options))
        except Spoiled:
            if (found := done()) is not None:
                return found
    raise Uncertain(f"Stripe has answered {_KEYS} keys of one call by 500.")


def _asked(call: Callable[[], _T]) -> _T:
    try:
        return call()
    except stripe.CardError as error:
        code = _decline_of(error)
        raise Declined(words_of(code), code) from None
    except stripe.RateLimitError as error:
        raise Slowed(str(error)) from None
    except stripe.IdempotencyError as error:
        raise (Passing if error.http_status == 409 else Refused)(str(error)) from None
    except (stripe.AuthenticationError, stripe.PermissionError, stripe.InvalidRequestError) as error:
        raise Refused(str(error)) from None
    except stripe.APIConnectionError as error:
        raise Uncertain(str(error)) from None
    except stripe.APIError as error:
        if "true" in str((error.headers or {}).get("Idempotent-Replayed", "")):
            raise Spoiled(str(error)) from None
        raise (Passing if error.http_status in (409, 503) else Uncertain)(str(error)) from None


def _decline_of(error: stripe.CardError) -> str:
    told = error.json_body or {}
    found = told.get("error", {}) if isinstance(told, dict) else {}
    return str(found.get("decline_code") or found.get("code") or "")


def _refund(told: Any) -> Refund:
    found: dict[str, Any] = told.to_dict()
    return Refund(
        id=found["id"],
        intent=str(found["payment_intent"]),
        amount=found["amount"],
        key=str((found.get("metadata") or {}).get("key", "")),
    )


def _intent(told: Any) -> Intent:
    found: dict[str, Any] = told.to_dict()
    error = found.get("last_payment_error") or {}
    told_charge = found.get("latest_charge")
    charge = told_charge if isinstance(told_charge, dict) else {"id": told_charge}
    return Intent(
        id=found["id"],
        status=found["status"],
        amount=found["amount"],
        currency=found["currency"],
        received=found.get("amount_received") or 0,
        charge=charge["id"],
        application_id=str((found.get("metadata") or {}).get("application", "")),
        declined=str(error.get("decline_code") or error.get("code") or ""),
        refunded=charge.get("amount_refunded") or 0,
    )
