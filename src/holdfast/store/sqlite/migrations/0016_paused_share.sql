-- The share of the last hour in which a node's limiter was paused, for people who look.
ALTER TABLE holdfast_breaker ADD COLUMN paused REAL NOT NULL DEFAULT 0;
