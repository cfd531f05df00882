-- The lock for which a job waits that was put off; what is held by time alone has none.
ALTER TABLE holdfast_queued ADD COLUMN waits_for TEXT;
