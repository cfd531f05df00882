-- Permits that are out: the last token, and a list of token, from and until.
local function keep_permits(key, permits)
  local last = now
  for _, permit in ipairs(permits.out) do
    last = math.max(last, permit[3])
  end
  keep(key, permits, last - now + GRACE)
end
