-- What is told to people: one open alert for each kind and cause.
CREATE TABLE holdfast_alert (
    id          TEXT    PRIMARY KEY,
    kind        TEXT    NOT NULL,
    cause       TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    opened_at   REAL    NOT NULL,
    told_at     REAL    NOT NULL,
    told_number INTEGER NOT NULL,
    quiet_since REAL, -- it does not hold any more, and ends when that lasts
    ended_at    REAL
) WITHOUT ROWID;
CREATE UNIQUE INDEX holdfast_alert_open ON holdfast_alert (kind, cause) WHERE ended_at IS NULL;
CREATE INDEX holdfast_alert_over ON holdfast_alert (ended_at) WHERE ended_at IS NOT NULL;

-- What programs say: that something holds, from a moment on.
CREATE TABLE holdfast_alert_cause (
    kind       TEXT    NOT NULL,
    cause      TEXT    NOT NULL,
    number     INTEGER NOT NULL,
    due_at     REAL    NOT NULL,
    expires_at REAL,
    PRIMARY KEY (kind, cause)
) WITHOUT ROWID;
CREATE INDEX holdfast_alert_cause_due ON holdfast_alert_cause (due_at);

-- The causes of alerts are found without reading all that they have caused.
ALTER TABLE holdfast_parked ADD COLUMN task TEXT;
UPDATE holdfast_parked SET task = (SELECT task FROM holdfast_job AS j WHERE j.seq = holdfast_parked.seq);
CREATE INDEX holdfast_parked_by_task ON holdfast_parked (state, task);
-- Whoever parks a job, also a worker of an earlier version, says no task.
CREATE TRIGGER holdfast_parked_has_task AFTER INSERT ON holdfast_parked WHEN NEW.task IS NULL BEGIN
    UPDATE holdfast_parked SET task = (SELECT task FROM holdfast_job WHERE seq = NEW.seq) WHERE seq = NEW.seq;
END;
CREATE INDEX holdfast_outbox_quarantined ON holdfast_outbox (type) WHERE state = 'quarantined';
