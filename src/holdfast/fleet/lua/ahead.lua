-- What the buckets are now; nothing is taken. KEYS: the memory, the buckets. Answers for each: the bucket, or false.
local memory = recall()
local answers = {}
for place = 2, #KEYS do
  local bucket = find_bucket(KEYS[place], memory)
  if bucket and bucket.spare then
    bucket.level = math.max(bucket.level, bucket.burst - bucket.spare)
  end
  answers[place - 1] = bucket or false
end
return cmsgpack.pack(answers)
