-- Give a member new messages: at most so many, and none after they have so many bytes.
-- KEYS[1]: the stream. ARGV: the group, the member, the most messages, the most bytes, how many are taken between two looks at the bytes.
local left, room, step = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local found = {}
while left > 0 and room > 0 do
  local asked = math.min(step, left)
  local answer = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', asked, 'STREAMS', KEYS[1], '>')
  if not answer then break end
  local entries = answer[1][2]
  for _, entry in ipairs(entries) do
    found[#found + 1] = entry
    for _, text in ipairs(entry[2]) do room = room - #text end
  end
  if #entries < asked then break end
  left = left - #entries
end
return found
