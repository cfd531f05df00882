-- Lease quota. KEYS: the memory, and a bucket for each want. ARGV: a list of least, most, rate, burst, lenient.
-- Answers for each want: the units granted, and what is left of the bucket.
local memory, TERMS_KEPT = recall_run(), 5

local function look(key, rate)
  local bucket = find_bucket(key, memory) or new_bucket(rate, memory)
  if not bucket.spare then
    look_for_evictions(memory)
    bucket.spare = math.min(rate * (now - memory.known), MOST)
  end
  return bucket
end

-- The largest rate and burst that anybody has asked with lately count for all.
local function set_terms(bucket, rate, burst)
  local is_kept = bucket.terms_until and now < bucket.terms_until
  bucket.fastest = is_kept and math.max(rate, bucket.fastest) or rate
  bucket.burst = is_kept and math.max(burst, bucket.burst) or burst
  if bucket.fastest == rate and bucket.burst == burst then
    bucket.terms_until = now + TERMS_KEPT
  end
  bucket.rate = math.min(bucket.fastest, bucket.slowed or bucket.fastest)
end

local function take(key, least, most, rate, own_burst, lenient)
  local bucket = look(key, rate)
  if lenient then -- what may be forgotten counts as not used
    bucket.spare = MOST
  end
  set_terms(bucket, rate, own_burst)
  local burst = bucket.burst
  local free = math.min(burst - bucket.level, bucket.spare)
  local granted = 0
  if not bucket.paused_until and free >= least then
    granted = math.min(most, own_burst, free)
  end
  bucket.level = bucket.level + granted
  bucket.spare = bucket.spare - granted
  keep_bucket(key, bucket)
  bucket.level = math.max(bucket.level, burst - bucket.spare) -- as the one who asks sees it
  return {granted, bucket}
end

local answers = {}
for place, want in ipairs(cmsgpack.unpack(ARGV[1])) do
  answers[place] = take(KEYS[place + 1], want[1], want[2], want[3], want[4], want[5])
end
return cmsgpack.pack(answers)
