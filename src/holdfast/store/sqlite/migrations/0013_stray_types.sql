-- The type of an event that nobody in the program knows; a message that is no event has none.
ALTER TABLE holdfast_stray ADD COLUMN type TEXT;
