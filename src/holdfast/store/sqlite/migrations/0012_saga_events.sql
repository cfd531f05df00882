-- Which events a saga has seen the beginning of: those that the outbox got after it began, whatever the clock says. Up to which
-- number and which position they are not; -1: it began before this was written down, and the clock decides.
ALTER TABLE holdfast_saga ADD COLUMN event_seq INTEGER NOT NULL DEFAULT -1;
ALTER TABLE holdfast_saga ADD COLUMN event_position INTEGER NOT NULL DEFAULT 0;
