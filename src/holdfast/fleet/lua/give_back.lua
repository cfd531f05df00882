-- Put back what was not used. KEYS: the memory, and a bucket for each return. ARGV: a list of units, at and mark.
local memory = recall()

local function is_of(bucket, at, mark)
  return at >= bucket.made and at <= now and now < at + IDLE and mark <= bucket.drained
end

for place, item in ipairs(cmsgpack.unpack(ARGV[1])) do
  local units, at, mark = item[1], item[2], item[3]
  local bucket = find_bucket(KEYS[place + 1], memory)
  if bucket then
    if is_of(bucket, at, mark) then
      local worth = math.max(units - math.max(bucket.drained - mark, 0), 0)
      worth = math.min(worth, bucket.level)
      bucket.level = bucket.level - worth
      bucket.spare = bucket.spare and math.min(bucket.spare + worth, MOST)
    end
    keep_bucket(KEYS[place + 1], bucket)
  end
end
return cmsgpack.pack(true)
