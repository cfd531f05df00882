-- The server's clock, read once for the whole call: what a call does, it does in one moment.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
