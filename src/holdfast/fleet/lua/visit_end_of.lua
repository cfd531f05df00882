-- KEYS: the index of the person. ARGV: what stands before an id in a key, the name or nothing, the id to be left or nothing.
local ended = 0
for _, id in ipairs(ids_of(KEYS[1])) do
  local key = ARGV[1] .. id
  if (ARGV[2] == '' or string.sub(id, 1, 16) == ARGV[2]) and id ~= ARGV[3] then
    if lasting(key) then
      ended = ended + 1
    end
    redis.call('DEL', key)
    redis.call('ZREM', KEYS[1], id)
  end
end
return cmsgpack.pack(ended)
