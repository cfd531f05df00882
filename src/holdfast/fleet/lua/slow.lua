-- The other side asked for less. KEYS: the memory, the bucket, the keys that are slowed. ARGV: rate (or false), pause, version,
-- the key, and how often it was too much in a row.
local memory = recall()
local asked = cmsgpack.unpack(ARGV[1])
local rate, pause, version = asked[1], asked[2], asked[3]
local bucket = find_bucket(KEYS[2], memory) or new_bucket(rate or 1, memory)
if pause > 0 then
  bucket.paused_until = math.max(bucket.paused_until or 0, now + pause)
end
if version >= bucket.lowered then
  bucket.in_row = math.max(bucket.in_row or 0, asked[5] or 0)
end
if rate and version >= bucket.lowered and (not bucket.slowed or rate < bucket.slowed) then
  bucket.slowed, bucket.rate = rate, math.min(bucket.rate, rate)
  bucket.version = draw(memory, bucket.version)
  bucket.lowered = bucket.version
end
keep_bucket(KEYS[2], bucket)
redis.call('ZADD', KEYS[3], now, asked[4])
redis.call('PEXPIRE', KEYS[3], string.format('%.0f', (WEEK + DAY) * 1000))
return cmsgpack.pack(bucket)
