-- What is known of one guard, for people. KEYS: the memory, the words of nodes, the fleet's state, its permits, the keys that are
-- slowed. ARGV: how the key of each bucket begins.
-- Answers: the generation, until when it is open (or false), now, the words, how many permits are out, and of each key that is
-- slowed or paused: the rate (or false), the version, the seconds of its pause, and how often it was too much in a row.
local memory = recall()

local function words(key)
  local heard, said = {}, redis.call('HGETALL', key)
  for place = 1, #said, 2 do
    local word = cmsgpack.unpack(said[place + 1])
    if word[1] <= now and now < word[2] then
      heard[#heard + 1] = {said[place], word[1], word[3]}
    end
  end
  return heard
end

local function permits_out(key)
  local number, permits = 0, find(key)
  for _, permit in ipairs(permits and permits.out or {}) do
    if permit[3] > now then
      number = number + 1
    end
  end
  return number
end

local paces = {}
for place, item in ipairs(slowed_buckets(KEYS[5], ARGV[1], memory)) do
  local bucket = item[2]
  local paused = bucket.paused_until and bucket.paused_until - now or 0
  paces[place] = {item[1], bucket.slowed or false, bucket.version, paused, bucket.in_row or 0}
end
local fleet = find(KEYS[3])
return cmsgpack.pack({
  fleet and fleet.generation or 0, fleet and is_open(fleet) and fleet.opened_until or false, now, words(KEYS[2]),
  permits_out(KEYS[4]), paces
})
