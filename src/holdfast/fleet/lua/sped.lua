-- Raise the rate that was lowered. KEYS: the memory, the bucket. ARGV: rate (or false) and version.
local memory = recall()
local asked = cmsgpack.unpack(ARGV[1])
local rate, version = asked[1], asked[2]
local bucket = find_bucket(KEYS[2], memory)
if not bucket then
  return cmsgpack.pack(false)
end
if bucket.slowed and version == bucket.version and (not rate or rate > bucket.slowed) then
  bucket.slowed = rate or nil
  bucket.version = draw(memory, bucket.version)
end
keep_bucket(KEYS[2], bucket)
return cmsgpack.pack(bucket)
