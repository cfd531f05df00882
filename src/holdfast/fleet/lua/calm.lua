-- The other side has answered: the next pause is the first again. KEYS: the memory, the bucket. ARGV: how often it was too much.
local memory = recall()
local in_row = cmsgpack.unpack(ARGV[1])
local bucket = find_bucket(KEYS[2], memory)
if not bucket then
  return cmsgpack.pack(false)
end
if (bucket.in_row or 0) == in_row then
  bucket.in_row = 0
end
keep_bucket(KEYS[2], bucket)
return cmsgpack.pack(bucket)
