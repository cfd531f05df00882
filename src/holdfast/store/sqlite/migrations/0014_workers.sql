-- Each start of a worker, for people who ask who is alive. It says so every few seconds, leaves its row behind when it dies, and
-- takes it away when it leaves in order. No promise depends on it.
CREATE TABLE holdfast_worker (
    name       TEXT    PRIMARY KEY,
    role       TEXT    NOT NULL,
    host       TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    version    TEXT    NOT NULL, -- of Holdfast
    queues     TEXT    NOT NULL, -- a JSON object: the slots of each
    tasks      TEXT    NOT NULL, -- a JSON array
    started_at REAL    NOT NULL,
    seen_at    REAL    NOT NULL, -- its last sign of life
    until      REAL    NOT NULL, -- it is alive until then
    draining   INTEGER NOT NULL DEFAULT 0,
    rescued    INTEGER NOT NULL DEFAULT 0 -- jobs that were put back because it gave no sign of life
) WITHOUT ROWID;
