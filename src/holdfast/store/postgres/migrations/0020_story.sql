-- The time that was asked for stays with a job, and what became of its claims that did not succeed: an array.
ALTER TABLE holdfast.job ADD COLUMN due_at timestamptz;
ALTER TABLE holdfast.job ADD COLUMN story jsonb;
ALTER TABLE holdfast.history ADD COLUMN due_at timestamptz;
ALTER TABLE holdfast.history ADD COLUMN story jsonb;
-- Why it was put off, in words. It is read only of jobs that are held for that.
ALTER TABLE holdfast.job ADD COLUMN words text;

-- One more entry. What repeats the last one is counted there; of what put the job off, and of the rest, the newest 50 are kept.
CREATE FUNCTION holdfast.tell(story jsonb, entry jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS '
    SELECT jsonb_agg(kept.entry ORDER BY kept.place) FROM (
        SELECT e.entry, e.place, row_number() OVER (
            PARTITION BY e.entry ->> ''o'' IN (''held'', ''snoozed'', ''released'', ''moved'') ORDER BY e.place DESC) AS age
        FROM jsonb_array_elements(
            CASE WHEN $2 ->> ''o'' IN (''held'', ''snoozed'', ''released'', ''moved'')
                AND ($1 -> -1) - ''{n,t,f,b,e,u,c,w}''::text[] = $2 - ''{n,t,f,b,e,u,c,w}''::text[]
            THEN ($1 - -1) || jsonb_build_array($2 || jsonb_build_object(
                ''n'', $1 -> -1 -> ''n'', ''b'', $1 -> -1 -> ''b'', ''c'', coalesce(($1 -> -1 ->> ''c'')::int, 1) + 1))
            ELSE coalesce($1, ''[]'') || jsonb_build_array($2 || jsonb_build_object(
                ''n'', coalesce(($1 -> -1 ->> ''n'')::int, 0) + 1)) END
        ) WITH ORDINALITY AS e(entry, place)) AS kept WHERE kept.age <= 50';
