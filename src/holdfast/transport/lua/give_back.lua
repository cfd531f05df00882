-- Let others have at once what a member holds: it looks as if it had been held for ever.
-- KEYS[1]: the stream. ARGV: the group, the member, the milliseconds for which it looks held, whether he leaves, then the ids; none: all.
local group, member, leaves = ARGV[1], ARGV[2], ARGV[4] == '1'

local function set_free(id)
  redis.call('XCLAIM', KEYS[1], group, member, 0, id, 'IDLE', ARGV[3], 'JUSTID')
end

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local known = false
for _, each in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  known = known or each[2] == group
end
if not known then return 0 end

if #ARGV > 4 then
  for place = 5, #ARGV do
    -- Another member may have it by now.
    if #redis.call('XPENDING', KEYS[1], group, ARGV[place], ARGV[place], 1, member) > 0 then
      set_free(ARGV[place])
    end
  end
  return 1
end

local held = redis.call('XPENDING', KEYS[1], group, '-', '+', 10000, member)
for _, entry in ipairs(held) do set_free(entry[1]) end
-- To delete a member is to forget what it holds: only one that holds nothing is deleted.
if leaves and #held == 0 then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, member) end
return 1
