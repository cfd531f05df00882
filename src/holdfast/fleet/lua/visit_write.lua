-- KEYS: the visit. ARGV: its data, and the version that was read.
local visit = lasting(KEYS[1])
if not visit or visit.version ~= tonumber(ARGV[2]) then
  return cmsgpack.pack(false)
end
visit.data, visit.version = ARGV[1], visit.version + 1
write_down(KEYS[1], visit)
return cmsgpack.pack(true)
