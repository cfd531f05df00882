-- Forget what is old and what every group has acknowledged; and members that hold nothing and were not seen for long.
-- KEYS[1]: the stream. ARGV: the milliseconds to keep, those after which a member is forgotten, the most messages to forget;
-- 0: all of them, also those of a node that has younger ones.
-- Answers with the number of messages forgotten.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local time = redis.call('TIME')
local low = {math.floor(time[1] * 1000 + time[2] / 1000 - ARGV[1]), 0}

local function parsed(id)
  local milliseconds, number = string.match(id, '^(%d+)-(%d+)$')
  return {tonumber(milliseconds), tonumber(number)}
end

local function lower(mark)
  if mark[1] < low[1] or (mark[1] == low[1] and mark[2] < low[2]) then low = mark end
end

local function field(facts, name)
  for place = 1, #facts, 2 do
    if facts[place] == name then return facts[place + 1] end
  end
end

for _, facts in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = field(facts, 'name')
  if field(facts, 'pending') > 0 then
    lower(parsed(redis.call('XPENDING', KEYS[1], group)[2]))
  else
    local last = parsed(field(facts, 'last-delivered-id'))
    lower({last[1], last[2] + 1})
  end
  for _, member in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], group)) do
    if field(member, 'pending') == 0 and field(member, 'idle') > tonumber(ARGV[2]) then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, field(member, 'name'))
    end
  end
end

local mark = string.format('%.0f-%.0f', math.max(low[1], 0), low[2])
if ARGV[3] == '0' then return redis.call('XTRIM', KEYS[1], 'MINID', '=', mark) end
return redis.call('XTRIM', KEYS[1], 'MINID', '~', mark, 'LIMIT', ARGV[3])
