-- How far a running job says it is. The row goes when the job ends or is put back, so a new attempt begins with nothing.

ALTER TABLE holdfast_running ADD COLUMN progress REAL; -- 0 to 1
ALTER TABLE holdfast_running ADD COLUMN note TEXT;
