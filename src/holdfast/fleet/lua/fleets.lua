-- What a fleet has agreed on of one breaker: its generation, and from when until when it is open.
local function keep_fleet(key, fleet)
  fleet.kept = now
  keep(key, fleet, WEEK)
end

local function is_open(fleet)
  return fleet.opened_until ~= nil and fleet.opened_at <= now and now < fleet.opened_until
end
