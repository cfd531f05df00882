-- An effect of which nobody knows is looked up again: how often it was, and when its unknown job is to be run for that.
ALTER TABLE holdfast_step ADD COLUMN looks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_parked ADD COLUMN look_at REAL;
CREATE INDEX holdfast_parked_to_look ON holdfast_parked (look_at) WHERE look_at IS NOT NULL;
