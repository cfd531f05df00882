-- Events that many sagas wait for wake them in portions, each a commit: up to which event this goes, and the last saga that was
-- woken for it. Behind `position` when nothing is left over.
ALTER TABLE holdfast.saga_reader ADD COLUMN until bigint NOT NULL DEFAULT 0, ADD COLUMN woken bigint NOT NULL DEFAULT 0;

-- The few that were undone among all that are over, for a person who looks for them.
CREATE INDEX saga_undone ON holdfast.saga (seq) WHERE state = 'undone';
-- Jobs of sagas that will not run again, among all the dead: upkeep looks for them every few seconds.
CREATE INDEX job_lost_to_saga ON holdfast.job (id) WHERE state IN ('dead', 'unknown') AND starts_with(task, 'saga:');
