-- It could not be loaded. KEYS: the epoch's, the value's. ARGV: token, seconds until a refresh is tried again.
if redis.call('HGET', KEYS[2], 'token') ~= ARGV[1] then
  return cmsgpack.pack(false)
end
redis.call('HDEL', KEYS[2], 'token', 'until', 'begun')
redis.call('HSET', KEYS[2], 'rest', exact(now + tonumber(ARGV[2])))
let_expire(KEYS[2])
return cmsgpack.pack(true)
