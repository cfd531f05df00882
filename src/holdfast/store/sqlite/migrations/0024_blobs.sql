-- What is kept of each blob: its row says where its object is. `object` is never given to another: a late mover removes nothing new.
CREATE TABLE holdfast_blob (
    name         TEXT    NOT NULL PRIMARY KEY,
    object       TEXT    NOT NULL UNIQUE,
    state        TEXT    NOT NULL CHECK (state IN ('kept', 'quarantined', 'deleted', 'purging', 'missing')),
    settled      INTEGER NOT NULL CHECK (settled IN (0, 1)),
    size         INTEGER NOT NULL CHECK (size >= 0),
    sha256       TEXT    NOT NULL CHECK (length(sha256) = 64),
    content_type TEXT    NOT NULL,
    reason       TEXT,
    created_at   REAL    NOT NULL,
    changed_at   REAL    NOT NULL
) WITHOUT ROWID;
CREATE INDEX holdfast_blob_to_settle ON holdfast_blob (changed_at) WHERE settled = 0;
CREATE INDEX holdfast_blob_to_purge ON holdfast_blob (changed_at) WHERE state IN ('deleted', 'purging');
CREATE INDEX holdfast_blob_to_decide ON holdfast_blob (state, name) WHERE state IN ('quarantined', 'missing');
