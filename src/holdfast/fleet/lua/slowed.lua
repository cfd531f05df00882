-- The buckets of one limiter that are slowed or paused. What is neither any more is left out of the list of them.
local MOST_SLOWED = 10000

local function slowed_buckets(list, prefix, memory)
  local found = {}
  for _, key in ipairs(redis.call('ZRANGE', list, 0, MOST_SLOWED - 1)) do
    local bucket = find_bucket(prefix .. key, memory)
    if bucket and (bucket.slowed or bucket.paused_until or (bucket.in_row or 0) > 0) then
      found[#found + 1] = {key, bucket}
    else
      redis.call('ZREM', list, key)
    end
  end
  return found
end
