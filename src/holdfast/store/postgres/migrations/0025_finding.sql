-- Jobs are found by their keys, newest first, and those that ended by their state; plain jobs are in none of these indexes.
CREATE INDEX job_dead_unique ON holdfast.job (unique_key, id) WHERE unique_key IS NOT NULL AND state = 'dead';
CREATE INDEX job_of_tenant ON holdfast.job (tenant, state, id) WHERE tenant IS NOT NULL;
CREATE INDEX history_by_unique ON holdfast.history (unique_key, id) WHERE unique_key IS NOT NULL;
CREATE INDEX history_of_tenant ON holdfast.history (tenant, state, id) WHERE tenant IS NOT NULL;
DROP INDEX holdfast.job_ended;
CREATE INDEX job_ended ON holdfast.job (state, id) WHERE state IN ('dead', 'unknown');
CREATE INDEX job_waiting ON holdfast.job (rank) WHERE held = 'waiting';

-- How many jobs there are of what is too many to count for each who asks.
CREATE TABLE holdfast.tally (
    state  text        NOT NULL,
    held   text,
    queue  text        NOT NULL,
    number bigint      NOT NULL,
    at     timestamptz NOT NULL,
    took   float8      NOT NULL -- seconds
);
