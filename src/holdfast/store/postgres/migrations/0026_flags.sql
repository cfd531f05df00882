-- Decisions of people that every process hears of: for everyone (no tenant), or for one tenant.
CREATE TABLE holdfast.flag (
    name   text        NOT NULL,
    tenant text        NOT NULL, -- empty: for everyone for whom nothing else is said
    value  boolean     NOT NULL,
    reason text        NOT NULL,
    set_by text        NOT NULL,
    set_at timestamptz NOT NULL,
    PRIMARY KEY (name, tenant)
);
-- Grows with each change: whoever keeps a copy sees by one number whether it is still true.
CREATE TABLE holdfast.flag_version (value bigint NOT NULL);
INSERT INTO holdfast.flag_version (value) VALUES (0);
