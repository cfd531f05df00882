-- The lock for which a job waits that was put off; what is held by time alone has none. It is read only of jobs that are held.
ALTER TABLE holdfast.job ADD COLUMN waits_for text;
