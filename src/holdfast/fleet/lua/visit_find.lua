-- KEYS: the index of the person. ARGV: what stands before an id in a key, and how many at most.
local found = {}
for _, id in ipairs(ids_of(KEYS[1])) do
  local visit = lasting(ARGV[1] .. id)
  if visit then
    found[#found + 1] = visit
  else
    redis.call('ZREM', KEYS[1], id)
  end
end
table.sort(found, function(one, other)
  if one.seen_at == other.seen_at then
    return one.id < other.id
  end
  return one.seen_at > other.seen_at
end)
while #found > tonumber(ARGV[2]) do
  table.remove(found)
end
return cmsgpack.pack(found)
