-- Make the group, unless it is there: at the end, or at the start. Says whether it was made.
-- KEYS[1]: the stream. ARGV: the group, whether from the start.
local start = ARGV[2] == '1'
local read = 0
if redis.call('EXISTS', KEYS[1]) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    if group[2] == ARGV[1] then return 0 end
  end
  local facts = redis.call('XINFO', 'STREAM', KEYS[1])
  read = false
  for place = 1, #facts, 2 do
    if facts[place] == 'entries-added' then read = facts[place + 1] end
  end
end
if start or read == false then
  redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], start and '0' or '$', 'MKSTREAM')
else
  -- Without this number the server cannot tell how far the group is behind (Redis 7 and newer).
  local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '$', 'MKSTREAM', 'ENTRIESREAD', read)
  if made.err then redis.call('XGROUP', 'CREATE', KEYS[1], ARGV[1], '$', 'MKSTREAM') end
end
return 1
