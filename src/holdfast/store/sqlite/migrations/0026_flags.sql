-- Decisions of people that every process hears of: for everyone (no tenant), or for one tenant.
CREATE TABLE holdfast_flag (
    name   TEXT    NOT NULL,
    tenant TEXT    NOT NULL, -- empty: for everyone for whom nothing else is said
    value  INTEGER NOT NULL,
    reason TEXT    NOT NULL,
    set_by TEXT    NOT NULL,
    set_at REAL    NOT NULL,
    PRIMARY KEY (name, tenant)
) WITHOUT ROWID;
INSERT INTO holdfast_counter (name, value) VALUES ('flags', 0);
