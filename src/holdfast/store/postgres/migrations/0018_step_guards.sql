-- A job that the guard of a step has refused waits for that guard's key: `waits_for`. The others wait for that of their task.
UPDATE holdfast.job SET waits_for = NULL WHERE held = 'guard' AND waits_for IS NOT NULL;
DROP INDEX holdfast.job_gated;
CREATE INDEX job_gated ON holdfast.job ((coalesce(waits_for, guard)), rank) WHERE held = 'guard';

-- An effect of which nobody knows is looked up again: how often it was, and when its unknown job is to be run for that.
ALTER TABLE holdfast.step ADD COLUMN looks integer NOT NULL DEFAULT 0;
ALTER TABLE holdfast.job ADD COLUMN look_at timestamptz;
CREATE INDEX job_to_look ON holdfast.job (look_at) WHERE look_at IS NOT NULL;
