-- The share of the last hour in which a node's limiter was paused, for people who look.
ALTER TABLE holdfast.breaker ADD COLUMN paused double precision NOT NULL DEFAULT 0;
