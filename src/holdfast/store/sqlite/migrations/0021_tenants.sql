-- Tenants that are paused. One that is resumed stays here until its paused jobs are let go.
CREATE TABLE holdfast_tenant (
    key        TEXT PRIMARY KEY,
    reason     TEXT NOT NULL,
    paused_by  TEXT NOT NULL,
    paused_at  REAL NOT NULL,
    resumed_at REAL
) WITHOUT ROWID;
CREATE INDEX holdfast_tenant_resumed ON holdfast_tenant (key) WHERE resumed_at IS NOT NULL;
CREATE INDEX holdfast_queued_paused ON holdfast_queued (tenant, priority DESC, rank) WHERE held = 'paused';
-- By tenant first: a pause looks for what is ready of one in all queues.
DROP INDEX holdfast_queued_tenant_ready;
CREATE INDEX holdfast_queued_tenant_ready ON holdfast_queued (tenant, queue)
    WHERE tenant IS NOT NULL AND held IS NULL;

-- Stands in the line of its order by its time, and not from its enqueue on.
ALTER TABLE holdfast_job ADD COLUMN by_time INTEGER NOT NULL DEFAULT 0;
