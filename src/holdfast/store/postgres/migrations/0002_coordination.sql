-- Leases by name, the ticks of schedules, idempotency keys, and the audit trail.

CREATE TABLE holdfast.lease (
    name  text        NOT NULL PRIMARY KEY,
    owner text        NOT NULL,
    token bigint      NOT NULL,
    until timestamptz NOT NULL
);

-- The newest nominal time of each schedule and its job. Nominal times only grow: one job for each.
CREATE TABLE holdfast.tick (
    schedule text        NOT NULL PRIMARY KEY,
    nominal  timestamptz NOT NULL,
    job_id   uuid        NOT NULL,
    at       timestamptz NOT NULL DEFAULT holdfast.now()
);

CREATE TABLE holdfast.key (
    tenant      text        NOT NULL,
    principal   text        NOT NULL,
    route       text        NOT NULL,
    key         text        NOT NULL,
    fingerprint text        NOT NULL,
    token       bigint      NOT NULL,
    until       timestamptz NOT NULL, -- in progress: the holder's lease; done: how long the answer is kept
    response    text,                 -- null while in progress
    PRIMARY KEY (tenant, principal, route, key)
);
CREATE INDEX key_for_prune ON holdfast.key (until);

CREATE TABLE holdfast.audit (
    seq        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT holdfast.now(),
    actor      text        NOT NULL,
    action     text        NOT NULL,
    subject    text        NOT NULL,
    before     text,
    after      text,
    request_id text
);
CREATE INDEX audit_by_subject ON holdfast.audit (subject, seq);

CREATE FUNCTION holdfast.audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit rows are never changed or deleted';
END $$;
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON holdfast.audit
    FOR EACH STATEMENT EXECUTE FUNCTION holdfast.audit_stays();
