"""The simulated Stripe behaves as its README says, towards Stripe's official client."""

from __future__ import annotations

import threading
import time

import httpx
import pytest
import stripe

from simulators.common.server import Running
from simulators.stripe.app import Simulator
from simulators.stripe.state import API_KEY, WEBHOOK_SECRET


@pytest.fixture
def simulator():
    return Simulator(seed=7)


@pytest.fixture
def server(simulator):
    with Running(simulator.app) as server:
        yield server


@pytest.fixture
def client(server):
    return stripe.StripeClient(API_KEY, base_addresses={"api": server.url}, max_network_retries=0)


def intent(client, key="k1", amount=7500, **more):
    params = {"amount": amount, "currency": "usd", "metadata": {"application": "a7"}, **more}
    return client.v1.payment_intents.create(params, {"idempotency_key": key})


def test_an_intent_takes_no_money_and_its_confirmation_does_once(client, simulator):
    made = intent(client)
    assert (made.status, made.amount_received) == ("requires_payment_method", 0)
    assert simulator.ledger.find("charged") == []
    paid = client.v1.payment_intents.confirm(made.id, {"payment_method": "pm_card_visa"})
    assert (paid.status, paid.amount_received) == ("succeeded", 7500)
    with pytest.raises(stripe.InvalidRequestError, match="succeeded"):
        client.v1.payment_intents.confirm(made.id, {"payment_method": "pm_card_visa"})
    [charge] = simulator.ledger.find("charged")
    assert charge["metadata"] == {"application": "a7"}


def test_a_declined_card_can_be_tried_again(client):
    made = intent(client)
    with pytest.raises(stripe.CardError) as told:
        client.v1.payment_intents.confirm(
            made.id, {"payment_method": "pm_card_chargeDeclinedInsufficientFunds"}
        )
    assert (told.value.http_status, told.value.code) == (402, "card_declined")
    again = client.v1.payment_intents.retrieve(made.id)
    assert again.status == "requires_payment_method"
    assert again.last_payment_error.decline_code == "insufficient_funds"
    assert (
        client.v1.payment_intents.confirm(made.id, {"payment_method": "pm_card_visa"}).status == "succeeded"
    )


def test_cards_for_trying_out(client):
    card = {"number": "4242 4242 4242 4242", "exp_month": 12, "exp_year": 2034, "cvc": "123"}
    method = client.v1.payment_methods.create({"type": "card", "card": card})
    assert method.card.last4 == "4242"
    with pytest.raises(stripe.CardError):
        client.v1.payment_methods.create({"type": "card", "card": {**card, "number": "1"}})


def test_a_key_keeps_the_first_answer(client, simulator):
    assert intent(client).id == intent(client).id
    assert len(simulator.ledger.find("intent")) == 1
    with pytest.raises(stripe.IdempotencyError):
        intent(client, amount=9900)
    simulator.clock.advance(86_401)
    assert len({intent(client).id, intent(client).id}) == 1
    assert len(simulator.ledger.find("intent")) == 2


def test_a_key_keeps_a_failure_that_came_after_the_beginning(client, simulator):
    simulator.faults.put("create", "server-error", times=1)
    for _ in range(2):
        with pytest.raises(stripe.APIError) as told:
            intent(client)
        assert told.value.http_status == 500
    assert len(simulator.ledger.find("intent")) == 1


def test_what_was_refused_gives_its_key_back(client):
    with pytest.raises(stripe.InvalidRequestError):
        intent(client, amount=1)
    assert intent(client, amount=7500).amount == 7500


def test_a_key_that_is_in_use(client, simulator):
    simulator.faults.put("create", "slow", times=1, seconds=1.0)
    first = threading.Thread(target=intent, args=(client,))
    first.start()
    while "k1" not in simulator.state.keys:
        time.sleep(0.01)
    with pytest.raises(stripe.StripeError) as told:
        intent(client)
    assert (told.value.http_status, told.value.json_body["error"]["code"]) == (409, "idempotency_key_in_use")
    first.join()
    assert len(simulator.ledger.find("intent")) == 1
    assert intent(client).id


@pytest.mark.parametrize("kind", ["refused", "unavailable", "429"])
def test_faults_before_do_nothing(client, simulator, kind):
    simulator.faults.put("create", kind, times=1)
    with pytest.raises(stripe.StripeError):
        intent(client)
    assert simulator.ledger.find("intent") == []
    assert intent(client).id


def test_a_lost_answer_is_told_to_the_same_key(client, simulator):
    simulator.faults.put("create", "lost", times=1)
    with pytest.raises(stripe.APIConnectionError):
        intent(client)
    assert intent(client).id == simulator.ledger.find("intent")[0]["id"]
    assert len(simulator.ledger.find("intent")) == 1


def test_refunds_are_no_more_than_was_paid(client, simulator):
    made = intent(client, confirm=True, payment_method="pm_card_visa")
    assert client.v1.refunds.create({"payment_intent": made.id, "amount": 2500}).amount == 2500
    assert client.v1.refunds.create({"payment_intent": made.id}).amount == 5000
    with pytest.raises(stripe.InvalidRequestError, match="already been refunded"):
        client.v1.refunds.create({"payment_intent": made.id})
    assert sum(each["amount"] for each in simulator.ledger.find("refunded")) == 7500


def test_a_wrong_key_of_the_account(server):
    with pytest.raises(stripe.AuthenticationError):
        intent(stripe.StripeClient("sk_wrong", base_addresses={"api": server.url}, max_network_retries=0))


# --- webhooks ---


class Receiver:
    """Takes webhooks, after refusing some."""

    def __init__(self, refuse: int = 0) -> None:
        self.refuse, self.heard = refuse, []

    async def __call__(self, scope, receive, send):
        message = await receive()
        signature = dict(scope["headers"])[b"stripe-signature"].decode()
        status = 500 if self.refuse > 0 else 200
        self.refuse -= 1
        if status == 200:
            self.heard.append((message["body"], signature))
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def wait(self, number):
        end = time.monotonic() + 10
        while len(self.heard) < number:
            assert time.monotonic() < end, f"{len(self.heard)} of {number} webhooks came"
            time.sleep(0.01)
        return [
            stripe.Webhook.construct_event(body, signature, WEBHOOK_SECRET) for body, signature in self.heard
        ]


def test_webhooks_are_signed_and_come_until_they_are_taken(client, simulator):
    receiver = Receiver(refuse=2)
    with Running(receiver) as there:
        simulator.settings.webhook_url = there.url
        simulator.settings.webhook_pause = 0.01
        made = intent(client, confirm=True, payment_method="pm_card_visa")
        events = receiver.wait(2)
    assert {each.type for each in events} == {"payment_intent.created", "payment_intent.succeeded"}
    assert {each.data.object.id for each in events} == {made.id}


def test_webhooks_may_come_twice_in_any_order_or_never(client, simulator, server):
    receiver = Receiver()
    with Running(receiver) as there:
        simulator.settings.change({"webhook_url": there.url, "webhook_copies": 2, "webhook_shuffle": 1})
        intent(client, confirm=True, payment_method="pm_card_visa")
        assert len({each.id for each in receiver.wait(4)}) == 2
        simulator.settings.webhook_off = True
        intent(client, key="k2", confirm=True, payment_method="pm_card_visa")
        assert len(receiver.heard) == 4
    told = httpx.get(f"{server.url}/_sim/events").json()
    assert len(told) == 4  # also those that were never sent


def test_a_body_that_was_changed_does_not_pass(client, simulator):
    receiver = Receiver()
    with Running(receiver) as there:
        simulator.settings.webhook_url = there.url
        intent(client)
        receiver.wait(1)
    body, signature = receiver.heard[0]
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(body.replace(b"7500", b"7501"), signature, WEBHOOK_SECRET)
