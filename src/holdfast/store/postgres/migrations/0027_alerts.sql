-- What is told to people: one open alert for each kind and cause.
CREATE TABLE holdfast.alert (
    id          text        NOT NULL PRIMARY KEY,
    kind        text        NOT NULL,
    cause       text        NOT NULL,
    number      bigint      NOT NULL,
    opened_at   timestamptz NOT NULL,
    told_at     timestamptz NOT NULL,
    told_number bigint      NOT NULL,
    quiet_since timestamptz, -- it does not hold any more, and ends when that lasts
    ended_at    timestamptz
);
CREATE UNIQUE INDEX alert_open ON holdfast.alert (kind, cause) WHERE ended_at IS NULL;
CREATE INDEX alert_over ON holdfast.alert (ended_at) WHERE ended_at IS NOT NULL;

-- What programs say: that something holds, from a moment on.
CREATE TABLE holdfast.alert_cause (
    kind       text        NOT NULL,
    cause      text        NOT NULL,
    number     bigint      NOT NULL,
    due_at     timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (kind, cause)
);
CREATE INDEX alert_cause_due ON holdfast.alert_cause (due_at);

-- The causes of alerts are found without reading all that they have caused.
CREATE INDEX job_ended_by_task ON holdfast.job (state, task) WHERE state IN ('dead', 'unknown');
CREATE INDEX outbox_quarantined ON holdfast.outbox (type) WHERE state = 'quarantined';
