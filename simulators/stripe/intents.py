"""PaymentIntents and refunds: making one takes no money, confirming it does, once."""

from __future__ import annotations

from typing import Any

from simulators.stripe import cards
from simulators.stripe.answers import Failed, declined, invalid, missing
from simulators.stripe.calls import Call
from simulators.stripe.state import Charge, Intent, Refund

_MOST = 99_999_999
_REASONS = ("duplicate", "fraudulent", "requested_by_customer")


def create(call: Call) -> dict[str, Any]:
    amount, currency = _amount(call.told), str(call.told.get("currency", "")).lower()
    if len(currency) != 3 or not currency.isalpha():
        raise invalid("Missing required param: currency.", "currency", "parameter_missing")
    made = call.world.state.new_id("pi")
    intent = Intent(
        id=made,
        amount=amount,
        currency=currency,
        created=call.now,
        metadata={str(name): str(value) for name, value in _object(call.told, "metadata").items()},
        client_secret=f"{made}_secret_{call.world.state.new_id('x')[2:]}",
        description=call.told.get("description"),
        receipt_email=call.told.get("receipt_email"),
    )
    call.world.state.intents[made] = intent
    call.world.ledger.add(
        "intent", id=made, amount=amount, metadata=dict(intent.metadata), key=call.key, at=call.now
    )
    call.tell("payment_intent.created", intent.shown())
    if call.told.get("confirm") == "true":
        return confirmed(call, intent)
    return intent.shown()


def retrieve(call: Call) -> dict[str, Any]:
    return _intent(call).shown()


def confirm(call: Call) -> dict[str, Any]:
    return confirmed(call, _intent(call))


def confirmed(call: Call, intent: Intent) -> dict[str, Any]:
    """Takes the money. An intent that has it is refused, so nobody pays it twice."""
    if intent.status not in ("requires_payment_method", "requires_confirmation"):
        raise Failed(
            400, "invalid_request_error", f"This PaymentIntent's status is {intent.status}: it cannot be confirmed.",
            code="payment_intent_unexpected_state", payment_intent=intent.shown(),
        )  # fmt: skip
    name = str(call.told.get("payment_method") or intent.payment_method or "")
    if not name:
        raise invalid("A payment method is needed to confirm.", "payment_method", "parameter_missing")
    method = cards.find(call.world.state, name)
    if method.decline is not None:
        _refuse(call, intent, method.decline)
    charge = Charge(call.world.state.new_id("ch"), intent.id, intent.amount, call.now)
    call.world.state.charges[charge.id] = charge
    intent.status, intent.payment_method, intent.latest_charge = "succeeded", method.id, charge.id
    intent.amount_received, intent.last_payment_error = intent.amount, None
    call.world.ledger.add(
        "charged",
        id=charge.id,
        intent=intent.id,
        amount=charge.amount,
        metadata=dict(intent.metadata),
        at=call.now,
    )
    call.tell("payment_intent.succeeded", intent.shown())
    return intent.shown()


def _refuse(call: Call, intent: Intent, code: str) -> None:
    words = cards.WORDS[code]
    intent.status = "requires_payment_method"
    intent.last_payment_error = {
        "type": "card_error",
        "code": "card_declined",
        "decline_code": code,
        "message": words,
    }
    call.world.ledger.add("declined", intent=intent.id, code=code, at=call.now)
    call.tell("payment_intent.payment_failed", intent.shown())
    raise declined(intent.shown(), code, words)


def cancel(call: Call) -> dict[str, Any]:
    intent = _intent(call)
    if intent.status in ("succeeded", "canceled"):
        raise Failed(
            400, "invalid_request_error", f"You cannot cancel this PaymentIntent because it has a status of {intent.status}.",
            code="payment_intent_unexpected_state", payment_intent=intent.shown(),
        )  # fmt: skip
    intent.status, intent.canceled_at = "canceled", call.now
    intent.cancellation_reason = call.told.get("cancellation_reason")
    call.tell("payment_intent.canceled", intent.shown())
    return intent.shown()


def search(call: Call) -> dict[str, Any]:
    """`GET /v1/payment_intents?limit=…&starting_after=…`, the newest first."""
    found = sorted(call.world.state.intents.values(), key=lambda each: (-each.created, each.id))
    after = call.query.get("starting_after")
    if after is not None:
        ids = [each.id for each in found]
        found = found[ids.index(after) + 1 :] if after in ids else []
    found = [each for each in found if each.created >= int(call.query.get("created[gte]", "0"))]
    limit = min(100, int(call.query.get("limit", "10")))
    with_charge = "data.latest_charge" in [
        value for name, value in call.query.items() if name.startswith("expand[")
    ]
    page = [_expanded(call, each) if with_charge else each.shown() for each in found[:limit]]
    return {"object": "list", "url": "/v1/payment_intents", "has_more": len(found) > limit, "data": page}


def _expanded(call: Call, intent: Intent) -> dict[str, Any]:
    charge = call.world.state.charges.get(intent.latest_charge or "")
    return intent.shown() | {"latest_charge": None if charge is None else _charge(charge, intent)}


def refund(call: Call) -> dict[str, Any]:
    state, told = call.world.state, call.told
    intent = state.intents.get(str(told.get("payment_intent", "")))
    if intent is None or intent.latest_charge is None:
        raise missing("payment_intent", str(told.get("payment_intent", "")))
    charge = state.charges[intent.latest_charge]
    amount = _amount(told) if "amount" in told else charge.amount - charge.refunded
    if told.get("reason") not in (None, *_REASONS):
        raise invalid(f"Invalid reason: must be one of {', '.join(_REASONS)}", "reason")
    if amount <= 0 or charge.refunded + amount > charge.amount:
        raise Failed(
            400,
            "invalid_request_error",
            f"Charge {charge.id} has already been refunded.",
            code="charge_already_refunded",
        )
    made = Refund(
        state.new_id("re"),
        intent.id,
        charge.id,
        amount,
        call.now,
        told.get("reason"),
        _object(told, "metadata"),
    )
    charge.refunded += amount
    state.refunds[made.id] = made
    call.world.ledger.add(
        "refunded", id=made.id, intent=intent.id, amount=amount, metadata=dict(intent.metadata), at=call.now
    )
    call.tell("charge.refunded", _charge(charge, intent))
    return made.shown(intent.currency)


def refunds(call: Call) -> dict[str, Any]:
    wanted = call.query.get("payment_intent")
    state = call.world.state
    found = [each for each in state.refunds.values() if wanted in (None, each.intent)]
    page = [each.shown(state.intents[each.intent].currency) for each in found]
    return {"object": "list", "url": "/v1/refunds", "has_more": False, "data": page}


def method(call: Call) -> dict[str, Any]:
    return cards.shown(cards.make(call.world.state, call.told))


def _charge(charge: Charge, intent: Intent) -> dict[str, Any]:
    return {
        "id": charge.id,
        "object": "charge",
        "amount": charge.amount,
        "amount_refunded": charge.refunded,
        "currency": intent.currency,
        "metadata": dict(intent.metadata),
        "payment_intent": intent.id,
        "refunded": charge.refunded == charge.amount,
    }


def _intent(call: Call) -> Intent:
    found = call.world.state.intents.get(call.path["intent"])
    if found is None:
        raise missing("payment_intent", call.path["intent"])
    return found


def _amount(told: dict[str, Any]) -> int:
    given = str(told.get("amount", ""))
    if not given:
        raise invalid("Missing required param: amount.", "amount", "parameter_missing")
    if not given.isdecimal() or not 50 <= int(given) <= _MOST:
        raise invalid(f"Invalid integer: {given}", "amount", "parameter_invalid_integer")
    return int(given)


def _object(told: dict[str, Any], name: str) -> dict[str, Any]:
    found = told.get(name, {})
    if not isinstance(found, dict):
        raise invalid(f"Invalid hash: {name}", name)
    return found
