-- KEYS: the visit. ARGV: seconds without a sign of life.
local visit = lasting(KEYS[1])
if not visit then
  return cmsgpack.pack(false)
end
visit.seen_at, visit['until'] = now, math.min(visit.last, now + tonumber(ARGV[1]))
write_down(KEYS[1], visit)
return cmsgpack.pack(true)
