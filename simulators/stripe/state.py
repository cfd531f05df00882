"""What the simulated Stripe knows: intents, charges, refunds, events and the keys of requests."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field
from typing import Any

API_KEY, WEBHOOK_SECRET = "sk_test_simulator", "whsec_simulator"
_LETTERS = string.ascii_letters + string.digits


@dataclass
class Intent:
    id: str
    amount: int
    currency: str
    created: int
    metadata: dict[str, str]
    client_secret: str
    description: str | None = None
    receipt_email: str | None = None
    status: str = "requires_payment_method"
    payment_method: str | None = None
    last_payment_error: dict[str, Any] | None = None
    latest_charge: str | None = None
    amount_received: int = 0
    canceled_at: int | None = None
    cancellation_reason: str | None = None

    def shown(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "payment_intent",
            "amount": self.amount,
            "amount_capturable": 0,
            "amount_details": {"tip": {}},
            "amount_received": self.amount_received,
            "automatic_payment_methods": None,
            "canceled_at": self.canceled_at,
            "cancellation_reason": self.cancellation_reason,
            "capture_method": "automatic",
            "client_secret": self.client_secret,
            "confirmation_method": "automatic",
            "created": self.created,
            "currency": self.currency,
            "customer": None,
            "description": self.description,
            "last_payment_error": self.last_payment_error,
            "latest_charge": self.latest_charge,
            "livemode": False,
            "metadata": dict(self.metadata),
            "next_action": None,
            "payment_method": self.payment_method,
            "payment_method_options": {},
            "payment_method_types": ["card"],
            "processing": None,
            "receipt_email": self.receipt_email,
            "setup_future_usage": None,
            "shipping": None,
            "statement_descriptor": None,
            "status": self.status,
        }


@dataclass
class Charge:
    """Money that was taken."""

    id: str
    intent: str
    amount: int
    created: int
    refunded: int = 0


@dataclass
class Refund:
    id: str
    intent: str
    charge: str
    amount: int
    created: int
    reason: str | None
    metadata: dict[str, str] = field(default_factory=dict)

    def shown(self, currency: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "refund",
            "amount": self.amount,
            "charge": self.charge,
            "created": self.created,
            "currency": currency,
            "metadata": dict(self.metadata),
            "payment_intent": self.intent,
            "reason": self.reason,
            "status": "succeeded",
        }


@dataclass
class Method:
    """A card, as a token: its number is not kept."""

    id: str
    last4: str
    decline: str | None  # the code with which it is declined


@dataclass
class Kept:
    """The first answer to a key. Without one, its request is still being done."""

    asked: str
    at: float
    status: int | None = None
    body: bytes = b""


class State:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.intents: dict[str, Intent] = {}
        self.charges: dict[str, Charge] = {}
        self.refunds: dict[str, Refund] = {}
        self.methods: dict[str, Method] = {}
        self.events: list[dict[str, Any]] = []
        self.keys: dict[str, Kept] = {}

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{''.join(self._chance.choices(_LETTERS, k=24))}"
