-- Jobs are found by their keys, newest first, and those that ended by their state; plain jobs are in none of these indexes.
CREATE INDEX holdfast_job_by_unique ON holdfast_job (unique_key, seq) WHERE unique_key IS NOT NULL;
CREATE INDEX holdfast_job_of_tenant ON holdfast_job (tenant, seq) WHERE tenant IS NOT NULL;
CREATE INDEX holdfast_parked_by_state ON holdfast_parked (state, seq);
CREATE INDEX holdfast_queued_waiting ON holdfast_queued (rank) WHERE held = 'waiting';

-- How many jobs there are of what is too many to count for each who asks.
CREATE TABLE holdfast_tally (
    state  TEXT    NOT NULL,
    held   TEXT,
    queue  TEXT    NOT NULL,
    number INTEGER NOT NULL,
    at     REAL    NOT NULL,
    took   REAL    NOT NULL -- seconds
);
