-- Tenants that are paused. One that is resumed stays here until its paused jobs are let go, so that none is forgotten: who
-- holds a job for this reason locks the row, and it is deleted only when no such job is left.
CREATE TABLE holdfast.tenant (
    key        text        NOT NULL PRIMARY KEY,
    reason     text        NOT NULL,
    paused_by  text        NOT NULL,
    paused_at  timestamptz NOT NULL DEFAULT holdfast.now(),
    resumed_at timestamptz
);
CREATE INDEX tenant_resumed ON holdfast.tenant (key) WHERE resumed_at IS NOT NULL;
CREATE INDEX job_paused ON holdfast.job (tenant, priority DESC, rank) WHERE held = 'paused';
-- By tenant first: a pause looks for what is ready of one in all queues.
DROP INDEX holdfast.job_tenant_ready;
CREATE INDEX job_tenant_ready ON holdfast.job (tenant, queue)
    WHERE tenant IS NOT NULL AND state = 'queued' AND held IS NULL;

-- Stands in the line of its order by its time, and not from its enqueue on.
ALTER TABLE holdfast.job ADD COLUMN by_time boolean NOT NULL DEFAULT false;
