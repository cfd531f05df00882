-- Open a breaker for everyone, or close it, unless its generation is another. KEYS: the fleet's state.
-- ARGV: the generation, and for how many seconds (false: it is closed). Answers whether it was done.
local asked = cmsgpack.unpack(ARGV[1])
local generation, open_for = asked[1], asked[2]
local fleet = find(KEYS[1])
if not fleet and open_for then
  fleet = {generation = 0}
end
if not fleet or fleet.generation ~= generation then
  return cmsgpack.pack(false)
end
fleet.generation = above(fleet.generation)
fleet.opened_at = open_for and now or nil
fleet.opened_until = open_for and now + open_for or nil
keep_fleet(KEYS[1], fleet)
return cmsgpack.pack(true)
