-- Events that many sagas wait for wake them in portions, each a commit: up to which event this goes, and the last saga that was
-- woken for it. Behind `position` when nothing is left over.
ALTER TABLE holdfast_saga_reader ADD COLUMN until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_saga_reader ADD COLUMN woken INTEGER NOT NULL DEFAULT 0;

-- The few that were undone among all that are over, for a person who looks for them.
CREATE INDEX holdfast_saga_undone ON holdfast_saga (seq) WHERE state = 'undone';
