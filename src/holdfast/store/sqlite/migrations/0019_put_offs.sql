-- How often a job was put off, uncharged, because the call behind its guard has failed.
ALTER TABLE holdfast_job ADD COLUMN put_offs INTEGER NOT NULL DEFAULT 0;
