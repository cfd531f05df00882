-- The right to load. KEYS: the epoch's, the value's, each tag's. ARGV: why, seconds of the lease, token, the next epoch,
-- a generation for tags that have none, seconds that a tag is known at least.
-- Answers whether it is granted; then its end and the tags' generations, else what there is.
local epoch = current_epoch(ARGV[4], true)
local key, why = KEYS[2], ARGV[1]
local entry = look(key, epoch)
local is_fresh = entry[1] and entry[3] > 0
local ends = now + tonumber(ARGV[2])
-- A right that ends later than one that is given now is from before the clock was set back: nobody may hold it.
local is_loading = entry[5] and tonumber(redis.call('HGET', key, 'until')) <= ends
if why ~= 'forced' and (is_fresh or is_loading or (why == 'stale' and entry[6])) then
  return cmsgpack.pack({false, entry})
end
redis.call('HSET', key, 'token', ARGV[3], 'until', exact(ends), 'begun', epoch)
let_expire(key)
local generations = {}
for place = 3, #KEYS do
  redis.call('SET', KEYS[place], ARGV[5], 'NX')
  generations[place - 2] = redis.call('GET', KEYS[place])
  local least = tonumber(ARGV[6]) * 1000
  if redis.call('PTTL', KEYS[place]) < least then
    redis.call('PEXPIRE', KEYS[place], string.format('%.0f', least))
  end
end
return cmsgpack.pack({true, {ends, generations}})
