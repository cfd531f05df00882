-- What is kept of a session of web pages: its fields, packed, and for each person the ids of his own, with their ends.
local function lasting(key)
  local visit = find(key)
  return visit and visit['until'] > now and visit
end

local function write_down(key, visit)
  keep(key, visit, visit['until'] - now + GRACE)
end

local function ids_of(index)
  redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('%.17g', now))
  return redis.call('ZRANGE', index, 0, -1)
end
