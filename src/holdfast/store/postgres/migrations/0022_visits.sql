-- Sessions of people on web pages. The id is a hash of what the cookie has: who reads this cannot take anybody's place.
CREATE TABLE holdfast.visit (
    id         text        PRIMARY KEY,
    principal  text,                 -- who has logged in
    tenant     text,
    data       text        NOT NULL, -- a JSON object
    version    bigint      NOT NULL, -- of the data
    address    text,
    agent      text,
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    until      timestamptz NOT NULL, -- it is over then, without another sign of life
    last       timestamptz NOT NULL, -- it is over then, whatever happens
    CONSTRAINT no_longer_than_its_last CHECK (until <= last)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX visit_of_principal ON holdfast.visit (principal, seen_at) WHERE principal IS NOT NULL;
CREATE INDEX visit_to_prune ON holdfast.visit (until);
-- What all processes that serve pages share, such as the key of their form tokens.
CREATE TABLE holdfast.web_secret (
    name  text PRIMARY KEY,
    value text NOT NULL
);
