-- Hold on. KEYS: the epoch's, the value's. ARGV: token, seconds of the lease.
if not is_held(KEYS[2], ARGV[1]) then
  return cmsgpack.pack(false)
end
redis.call('HSET', KEYS[2], 'until', exact(now + tonumber(ARGV[2])))
let_expire(KEYS[2])
return cmsgpack.pack(true)
