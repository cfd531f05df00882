-- How far a running job says it is: cleared when it is put back or parked, so a new attempt begins with nothing.
-- Neither column is in an index, so that a report can stay on its page.

ALTER TABLE holdfast.job ADD COLUMN progress double precision, ADD COLUMN note text; -- progress: 0 to 1
