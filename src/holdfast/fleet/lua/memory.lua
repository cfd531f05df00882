-- Since when the server remembers us. Whatever it may have forgotten counts as spent in the moment before.
-- KEYS[1] has: `began`, the time since when nothing was lost; `known`, the time since when a bucket that is not there has
-- granted nothing; `run` and `evicted`, by which a restart and an eviction are noticed; `token`, the last version that was
-- drawn; `number`, one that each memory has to itself; `kept`, when this was written.
local function info(section, pattern)
  local text = redis.pcall('INFO', section) -- may be forbidden; then nothing is noticed, and nothing relied on
  return type(text) == 'string' and string.match(text, pattern) or false
end

local function run_id()
  return info('server', 'run_id:(%w+)')
end

local function evictions()
  return info('stats', 'evicted_keys:(%d+)')
end

local function memorise(memory)
  memory.kept = now
  keep(KEYS[1], memory, 30 * DAY)
  return memory
end

local function begin(before)
  return memorise({
    began = now,
    known = now,
    run = run_id(),
    evicted = evictions(),
    number = above(before.number),
    token = before.token
  })
end

local function recall()
  local memory = find(KEYS[1])
  if not memory then
    return begin({number = 0, token = 0})
  end
  if memory.began > now or memory.known > now then -- the clock was set back: nobody can tell how long ago that was
    return begin(memory)
  end
  if now - memory.kept > DAY or memory.kept > now then
    memorise(memory)
  end
  return memory
end

-- The same for who grants: after a restart there may be data, but not the last.
local function recall_run()
  local memory = recall()
  return run_id() == memory.run and memory or begin(memory)
end

local function draw(memory, last)
  memory.token = above(math.max(memory.token, last))
  memorise(memory)
  return memory.token
end

-- A bucket that is missing was never there, has drained, or was evicted: nobody can tell which, or when.
local function look_for_evictions(memory)
  local evicted = evictions()
  if not evicted or evicted ~= memory.evicted then
    memory.evicted, memory.known = evicted, now
    memorise(memory)
  end
end
