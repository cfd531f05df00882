-- Which call of a step counted: how many were made, and when the last of them began. An intent stands apart until it is known
-- whether its call was made, so that one that a guard refused leaves what was there before.
ALTER TABLE holdfast_step ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holdfast_step ADD COLUMN begun_at REAL;
ALTER TABLE holdfast_step ADD COLUMN intent_at REAL;
