-- What is kept of a key: a hash. `value`, `written`, `fresh` and `stale` (moments), `tags` (packed: key and generation of each)
-- and `epoch` are of the value; `token`, `until` and `begun` (an epoch) of who loads it; `rest` is when a refresh may be tried.
-- KEYS[1] has the epoch. Another one begins when the server has begun anew, or has lost the last: what it has may be older
-- than an invalidation that it does not know of any more. Generations and epochs are made by chance, and never come again.
local KEPT = 30 * DAY

local function exact(number)
  return string.format('%.17g', number)
end

local function run_id()
  local text = redis.pcall('INFO', 'server') -- may be forbidden; then a restart is not noticed
  return type(text) == 'string' and string.match(text, 'run_id:(%w+)') or false
end

-- `candidate` is the next epoch, in case. Looking for a restart takes a while, so readers do it now and then.
local function current_epoch(candidate, looks)
  local memory = find(KEYS[1])
  if memory and not looks then
    return memory.epoch
  end
  local run = run_id()
  if not memory or memory.run ~= run then
    memory = {run = run, epoch = candidate}
    keep(KEYS[1], memory, KEPT)
  elseif redis.call('PTTL', KEYS[1]) < KEPT * 500 then -- half of it; a server that is full, or only to be read, is read
    redis.pcall('PEXPIRE', KEYS[1], string.format('%.0f', KEPT * 1000))
  end
  return memory.epoch
end

local function unpacked(text)
  local is_well, tags = pcall(cmsgpack.unpack, text)
  return is_well and type(tags) == 'table' and tags
end

local function has_generations(tags)
  if not tags then -- they were damaged
    return false
  end
  for place = 1, #tags, 2 do
    if redis.call('GET', tags[place]) ~= tags[place + 1] then
      return false
    end
  end
  return true
end

local function read(key)
  local found = redis.pcall('HMGET', key, 'value', 'written', 'fresh', 'stale', 'tags', 'epoch', 'until', 'rest')
  if found.err then -- something else has this key
    redis.call('DEL', key)
    return {}
  end
  return found
end

-- Value or false, age, seconds that it is fresh, seconds that it may be served, whether it is loaded, whether it rests.
local function look(key, epoch)
  local found = read(key)
  local is_loading = (tonumber(found[7]) or 0) > now
  local is_resting = (tonumber(found[8]) or 0) > now
  local written, fresh, stale = tonumber(found[2]), tonumber(found[3]), tonumber(found[4])
  if not (found[1] and written and fresh and stale and found[5]) or found[6] ~= epoch
    or written > now or stale <= now or not has_generations(unpacked(found[5])) then
    return {false, 0, 0, 0, is_loading, is_resting}
  end
  return {found[1], now - written, math.max(fresh - now, 0), stale - now, is_loading, is_resting}
end

-- Until the last of its moments, and a while: a clock that is set back by less finds it again.
local function let_expire(key)
  local found = redis.call('HMGET', key, 'stale', 'until', 'rest')
  local last = now
  for place = 1, 3 do
    last = math.max(last, tonumber(found[place]) or 0)
  end
  local lasts = math.min(last - now + GRACE, LONGEST)
  redis.call('PEXPIRE', key, string.format('%.0f', lasts * 1000))
end

local function is_held(key, token)
  local found = redis.call('HMGET', key, 'token', 'until')
  return found[1] == token and (tonumber(found[2]) or 0) > now
end
