-- Which events a saga has seen the beginning of: those that the outbox got after it began, whatever the clock says. Up to which
-- number and which position they are not; -1: it began before this was written down, and the clock decides.
ALTER TABLE holdfast.saga ADD COLUMN event_seq bigint NOT NULL DEFAULT -1, ADD COLUMN event_position bigint NOT NULL DEFAULT 0;
