-- Which call of a step counted: how many were made, and when the last of them began. An intent stands apart until it is known
-- whether its call was made, so that one that a guard refused leaves what was there before.
ALTER TABLE holdfast.step ADD COLUMN calls integer NOT NULL DEFAULT 0;
ALTER TABLE holdfast.step ADD COLUMN begun_at timestamptz;
ALTER TABLE holdfast.step ADD COLUMN intent_at timestamptz;
