-- KEYS: the visit.
return cmsgpack.pack(lasting(KEYS[1]) or false)
