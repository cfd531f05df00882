-- How often a limiter's key was too much for the other side, in a row, which did not say for how long: each pause is longer.
ALTER TABLE holdfast_bucket ADD COLUMN in_row INTEGER NOT NULL DEFAULT 0;
CREATE INDEX holdfast_bucket_in_row ON holdfast_bucket (name, key) WHERE in_row > 0;
