"""Stripe's payments as a simulator: PaymentIntents, refunds, idempotency keys and signed webhooks on a loopback port."""
