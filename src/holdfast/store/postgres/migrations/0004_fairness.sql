-- What has arrived, by queue and tenant: a promote takes some of each, so that none waits for another's crowd.
-- And by order: one that is taken early must not overtake an earlier job of its order that has another tenant.

CREATE INDEX job_arrived_by_tenant ON holdfast.job (queue, coalesce(tenant, ''), rank) WHERE held = 'arrived';
CREATE INDEX job_arrived_in_order ON holdfast.job (ordering_key, rank)
    WHERE held = 'arrived' AND ordering_key IS NOT NULL;
