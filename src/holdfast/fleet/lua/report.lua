-- A node says how its breakers are, and hears of the others. KEYS: for each guard the words of nodes, and the fleet's state.
-- ARGV: the node and its ttl, then its word on each guard, which nobody reads here.
-- Answers for each guard: the generation, until when it is open (or false), now, and the others' words.
local node, ttl = ARGV[1], tonumber(ARGV[2])

local function say(key, word)
  redis.call('HSET', key, node, cmsgpack.pack({now, now + ttl, word}))
  local lasts = math.max(math.ceil((ttl + GRACE) * 1000), redis.call('PTTL', key))
  redis.call('PEXPIRE', key, string.format('%.0f', lasts))
end

local function others(key)
  local heard, said = {}, redis.call('HGETALL', key)
  for place = 1, #said, 2 do
    local name, word = said[place], cmsgpack.unpack(said[place + 1])
    if word[2] + GRACE < now then
      redis.call('HDEL', key, name)
    elseif name ~= node and word[1] <= now and now < word[2] then
      heard[#heard + 1] = {name, word[1], word[3]}
    end
  end
  return heard
end

local function state(key)
  local fleet = find(key)
  if not fleet then
    return 0, false
  end
  if now - fleet.kept > DAY or fleet.kept > now then -- who still reports still needs the generation
    keep_fleet(key, fleet)
  end
  return fleet.generation, is_open(fleet) and fleet.opened_until
end

local answers = {}
for place = 1, #KEYS / 2 do
  local words, fleet = KEYS[2 * place - 1], KEYS[2 * place]
  say(words, ARGV[place + 2])
  local generation, opened_until = state(fleet)
  answers[place] = {generation, opened_until, now, others(words)}
end
return cmsgpack.pack(answers)
