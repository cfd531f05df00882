-- KEYS: the visit.
local visit = lasting(KEYS[1])
redis.call('DEL', KEYS[1])
return cmsgpack.pack(visit and true or false)
