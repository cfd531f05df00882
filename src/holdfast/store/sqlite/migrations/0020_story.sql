-- The time that was asked for stays with a job, and what became of its claims that did not succeed: a JSON array.
ALTER TABLE holdfast_job ADD COLUMN due_at REAL;
ALTER TABLE holdfast_job ADD COLUMN story TEXT;
-- Why it was put off, in words: for as long as it is held for that.
ALTER TABLE holdfast_queued ADD COLUMN reason TEXT;
