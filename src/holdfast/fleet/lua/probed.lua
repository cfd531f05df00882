-- Give a permit back. KEYS: the permits. ARGV: the token. Answers whether it was still out.
local token = cmsgpack.unpack(ARGV[1])
local permits = find(KEYS[1])
for place, permit in ipairs(permits and permits.out or {}) do
  if permit[1] == token and permit[3] > now then
    table.remove(permits.out, place)
    keep_permits(KEYS[1], permits)
    return cmsgpack.pack(true)
  end
end
return cmsgpack.pack(false)
