-- Begin anew: closed, no permits out, no rate lowered, no pause. KEYS and ARGV as in look.lua. Answers whether anything is known.
local memory = recall()
local fleet = find(KEYS[3])
local slowed = slowed_buckets(KEYS[5], ARGV[1], memory)
local is_known = fleet ~= nil or #slowed > 0 or redis.call('EXISTS', KEYS[2]) == 1
if fleet then
  keep_fleet(KEYS[3], {generation = above(fleet.generation)})
end
for _, item in ipairs(slowed) do
  local bucket = item[2]
  bucket.slowed, bucket.paused_until, bucket.in_row = nil, nil, 0
  bucket.version = draw(memory, bucket.version) -- who saw the old state cannot bring it back
  bucket.lowered = bucket.version
  keep_bucket(ARGV[1] .. item[1], bucket)
end
redis.call('DEL', KEYS[2], KEYS[4], KEYS[5])
return cmsgpack.pack(is_known)
