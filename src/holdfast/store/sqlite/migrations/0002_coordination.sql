-- Leases by name, the ticks of schedules, idempotency keys, and the audit trail.

CREATE TABLE holdfast_lease (
    name  TEXT PRIMARY KEY,
    owner TEXT    NOT NULL,
    token INTEGER NOT NULL,
    until REAL    NOT NULL
) WITHOUT ROWID;

-- The newest nominal time of each schedule and its job. Nominal times only grow: one job for each.
CREATE TABLE holdfast_tick (
    schedule TEXT PRIMARY KEY,
    nominal  REAL NOT NULL,
    job_id   TEXT NOT NULL,
    at       REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE holdfast_key (
    tenant      TEXT NOT NULL,
    principal   TEXT NOT NULL,
    route       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    token       INTEGER NOT NULL,
    until       REAL NOT NULL, -- in progress: the holder's lease; done: how long the answer is kept
    response    TEXT,          -- null while in progress
    PRIMARY KEY (tenant, principal, route, key)
) WITHOUT ROWID;
CREATE INDEX holdfast_key_for_prune ON holdfast_key (until);

CREATE TABLE holdfast_audit (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    at         REAL NOT NULL,
    actor      TEXT NOT NULL,
    action     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    before     TEXT,
    after      TEXT,
    request_id TEXT
);
CREATE INDEX holdfast_audit_by_subject ON holdfast_audit (subject, seq);

CREATE TRIGGER holdfast_audit_keeps BEFORE UPDATE ON holdfast_audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are never changed');
END;
CREATE TRIGGER holdfast_audit_stays BEFORE DELETE ON holdfast_audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are never deleted');
END;
