-- A permit for one call while half open. KEYS: the permits, the fleet's state. ARGV: how many may be out, and the lease.
-- Answers with the token and its end, or false.
local asked = cmsgpack.unpack(ARGV[1])
local most, lease = asked[1], asked[2]
local permits = find(KEYS[1]) or {token = 0, out = {}}
local out, number = {}, 0
for _, permit in ipairs(permits.out) do
  -- After the clock was set back, permits go with it: none ends early, and none lasts for ever.
  local ahead = math.max(permit[2] - now, 0)
  local since, till = permit[2] - ahead, permit[3] - ahead
  if till + GRACE >= now then
    out[#out + 1] = {permit[1], since, till}
  end
  if till > now then
    number = number + 1
  end
end
permits.out = out
if not find(KEYS[2]) then
  keep_fleet(KEYS[2], {generation = 0})
end
local answer = false
if number < most then
  permits.token = above(permits.token)
  answer = {permits.token, now + lease}
  out[#out + 1] = {permits.token, now, now + lease}
end
keep_permits(KEYS[1], permits)
return cmsgpack.pack(answer)
