-- How a value is kept: packed, since text would lose the last digits of a number, and never without an end.
local LONGEST = 3155760000 -- seconds: a hundred years
local WEEK, DAY = 604800, 86400
local GRACE = 60 -- seconds that what has ended is kept: a clock that is set back by less finds it again

local function find(key)
  local packed = redis.call('GET', key)
  return packed and cmsgpack.unpack(packed)
end

local function keep(key, value, seconds)
  local lasts = math.max(math.ceil(math.min(seconds, LONGEST) * 1000), 1)
  redis.call('SET', key, cmsgpack.pack(value), 'PX', string.format('%.0f', lasts))
end

-- A number that grows also when all is forgotten, since it is at least the time.
local function above(last)
  return math.max(last + 1, math.floor(now * 1e6))
end
