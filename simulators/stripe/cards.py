"""Cards for trying out: their numbers say how they are answered, as Stripe's own test cards do."""

from __future__ import annotations

from typing import Any

from simulators.stripe.answers import Failed, invalid
from simulators.stripe.state import Method, State

# Number: the code with which it is declined; None: it is taken.
CARDS: dict[str, str | None] = {
    "4242424242424242": None,
    "5555555555554444": None,
    "4000000000000002": "generic_decline",
    "4000000000009995": "insufficient_funds",
    "4000000000000069": "expired_card",
}
TOKENS = {
    "pm_card_visa": "4242424242424242",
    "pm_card_mastercard": "5555555555554444",
    "pm_card_chargeDeclined": "4000000000000002",
    "pm_card_chargeDeclinedInsufficientFunds": "4000000000009995",
    "pm_card_chargeDeclinedExpiredCard": "4000000000000069",
}
WORDS = {
    "generic_decline": "Your card was declined.",
    "insufficient_funds": "Your card has insufficient funds.",
    "expired_card": "Your card has expired.",
}


def make(state: State, told: dict[str, Any]) -> Method:
    """`POST /v1/payment_methods`."""
    card = told.get("card")
    if told.get("type") != "card" or not isinstance(card, dict):
        raise invalid("Missing required param: card.", "card", "parameter_missing")
    number = str(card.get("number", "")).replace(" ", "")
    if number not in CARDS:
        raise Failed(
            402, "card_error", "Your card number is incorrect.", code="incorrect_number", param="number"
        )
    method = Method(state.new_id("pm"), number[-4:], CARDS[number])
    state.methods[method.id] = method
    return method


def find(state: State, name: str) -> Method:
    if name in state.methods:
        return state.methods[name]
    if name in TOKENS:
        number = TOKENS[name]
        return Method(name, number[-4:], CARDS[number])
    raise invalid(f"No such PaymentMethod: '{name}'", "payment_method", "resource_missing")


def shown(method: Method) -> dict[str, Any]:
    card = {"brand": "visa", "last4": method.last4, "exp_month": 12, "exp_year": 2034}
    return {"id": method.id, "object": "payment_method", "type": "card", "card": card, "livemode": False}
