-- Sessions of people on web pages. The id is a hash of what the cookie has: who reads this cannot take anybody's place.
CREATE TABLE holdfast_visit (
    id         TEXT    PRIMARY KEY,
    principal  TEXT,             -- who has logged in
    tenant     TEXT,
    data       TEXT    NOT NULL, -- a JSON object
    version    INTEGER NOT NULL, -- of the data
    address    TEXT,
    agent      TEXT,
    created_at REAL    NOT NULL,
    seen_at    REAL    NOT NULL,
    until      REAL    NOT NULL, -- it is over then, without another sign of life
    last       REAL    NOT NULL, -- it is over then, whatever happens
    CONSTRAINT no_longer_than_its_last CHECK (until <= last)
) WITHOUT ROWID;
CREATE INDEX holdfast_visit_of_principal ON holdfast_visit (principal, seen_at) WHERE principal IS NOT NULL;
CREATE INDEX holdfast_visit_to_prune ON holdfast_visit (until);
-- What all processes that serve pages share, such as the key of their form tokens.
CREATE TABLE holdfast_web_secret (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
