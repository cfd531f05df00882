-- Each start of a worker, for people who ask who is alive. It says so every few seconds, leaves its row behind when it dies, and
-- takes it away when it leaves in order. No promise depends on it. No column that changes has an index, so that a sign of life
-- stays on its page.
CREATE TABLE holdfast.worker (
    started_at timestamptz NOT NULL DEFAULT holdfast.now(),
    seen_at    timestamptz NOT NULL DEFAULT holdfast.now(), -- its last sign of life
    until      timestamptz NOT NULL, -- it is alive until then
    pid        integer     NOT NULL,
    rescued    integer     NOT NULL DEFAULT 0, -- jobs that were put back because it gave no sign of life
    draining   boolean     NOT NULL DEFAULT false,
    name       text        NOT NULL PRIMARY KEY,
    role       text        NOT NULL,
    host       text        NOT NULL,
    version    text        NOT NULL, -- of Holdfast
    queues     text        NOT NULL, -- a JSON object: the slots of each
    tasks      text        NOT NULL  -- a JSON array
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
