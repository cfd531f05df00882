-- KEYS: the visit, the index of the person, the visit whose place it takes. ARGV: its fields, seconds without a sign of life, and in all.
local visit = cmsgpack.unpack(ARGV[1])
local idle, last = tonumber(ARGV[2]), tonumber(ARGV[3])
visit.version, visit.created_at, visit.seen_at = 1, now, now
visit['until'], visit.last = now + math.min(idle, last), now + last
if KEYS[3] then
  redis.call('DEL', KEYS[3])
end
write_down(KEYS[1], visit)
if visit.principal then
  redis.call('ZADD', KEYS[2], string.format('%.17g', visit.last), visit.id)
  local lasts = math.ceil(math.min(last + GRACE, LONGEST) * 1000)
  if redis.call('PTTL', KEYS[2]) < lasts then
    redis.call('PEXPIRE', KEYS[2], string.format('%.0f', lasts))
  end
end
return cmsgpack.pack(true)
