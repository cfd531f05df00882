-- Keep a value. KEYS: the epoch's, the value's, each tag's. ARGV: token, value, seconds fresh, seconds served, the next epoch,
-- seconds that tags are known beyond that, and the tags' generations.
local epoch = current_epoch(ARGV[5], true)
local key = KEYS[2]
local tags = {}
for place = 3, #KEYS do
  tags[#tags + 1] = KEYS[place]
  tags[#tags + 1] = ARGV[place + 4]
end
if not is_held(key, ARGV[1]) or redis.call('HGET', key, 'begun') ~= epoch or not has_generations(tags) then
  return cmsgpack.pack(false)
end
local fresh, stale = tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('HSET', key, 'value', ARGV[2], 'written', exact(now), 'fresh', exact(now + math.min(fresh, stale)),
  'stale', exact(now + stale), 'tags', cmsgpack.pack(tags), 'epoch', epoch)
redis.call('HDEL', key, 'token', 'until', 'begun', 'rest')
let_expire(key)
local least = math.min(stale + tonumber(ARGV[6]), LONGEST) * 1000
for place = 3, #KEYS do
  if redis.call('PTTL', KEYS[place]) < least then
    redis.call('PEXPIRE', KEYS[place], string.format('%.0f', least))
  end
end
return cmsgpack.pack(true)
