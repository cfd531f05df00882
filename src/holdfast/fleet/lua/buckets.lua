-- Buckets of quota: the arithmetic of holdfast.store.quota, and what is known of the time before a bucket was made.
-- `spare` is what its rate has earned since the server remembers, less what was granted: never granted beyond. It is
-- missing until the first take. `made`: grants from before are not of this bucket.
-- `memory`: the one in which it was last seen.
local IDLE, MOST = 3600, 1e9

local function new_bucket(rate, memory)
  return {
    at = now, rate = rate, level = 0, drained = 0, version = 0, lowered = 0,
    made = now, burst = 0, memory = memory.number
  }
end

-- What was granted in another memory may be forgotten: as if all was spent when this one began, and nothing to give back.
-- The number tells, not the time: a clock may have been set back. In its first moment a memory grants nothing.
local function mistrust(bucket, memory)
  if bucket.memory ~= memory.number then
    bucket.spare, bucket.made, bucket.memory = bucket.spare and 0, memory.began + 1e-6, memory.number
  end
end

local function settle(bucket, memory)
  mistrust(bucket, memory)
  local passed = now - bucket.at
  local drained = math.max(passed, 0) * bucket.rate
  local earned = math.max(now - math.max(bucket.at, memory.began), 0) * bucket.rate
  local paused_until = bucket.paused_until and bucket.paused_until + math.min(passed, 0)
  bucket.paused_until = paused_until and paused_until > now and math.min(paused_until, now + DAY) or nil
  if passed < 0 then
    bucket.terms_until = nil
  end
  bucket.at = now
  bucket.level = math.max(bucket.level - drained, 0)
  bucket.drained = bucket.drained + drained
  bucket.spare = bucket.spare and math.min(bucket.spare + earned, MOST)
  return bucket
end

local function find_bucket(key, memory)
  local bucket = find(key)
  return bucket and settle(bucket, memory)
end

-- Until it is drained and has earned a burst again: then it is as good as one that nobody knows.
local function keep_bucket(key, bucket)
  local idle = (bucket.slowed or (bucket.in_row or 0) > 0) and WEEK or IDLE
  local owed = math.max(bucket.level, bucket.spare and bucket.burst - bucket.spare or 0)
  keep(key, bucket, math.max(idle, owed / bucket.rate, (bucket.paused_until or now) - now) + GRACE)
end
