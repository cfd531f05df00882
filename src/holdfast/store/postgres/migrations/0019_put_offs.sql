-- How often a job was put off, uncharged, because the call behind its guard has failed.
ALTER TABLE holdfast.job ADD COLUMN put_offs integer NOT NULL DEFAULT 0;
