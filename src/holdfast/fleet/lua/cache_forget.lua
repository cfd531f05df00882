-- Invalidate. KEYS: the epoch's, and those of values or tags: a value without the generation of its tag does not count.
for place = 2, #KEYS do
  redis.call('DEL', KEYS[place])
end
return cmsgpack.pack(true)
