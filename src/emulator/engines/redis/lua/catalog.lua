-- Finds things by kind and by expiry. Steps see different states if data are written in between.
local STEP = 500

-- When the next entry of a log expires, if it has a live one.
local function next_entry(key, now)
  local found = redis.call('ZRANGEBYSCORE', prefix .. 'le:' .. key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return found[2]
end

-- The expiry of a document, ballot, log or pool that has not expired; nothing for other members.
local function live(member, ends, now)
  local what = string.sub(member, 1, 1)
  if not string.find('dblp', what, 1, true) then return nil end
  if what == 'l' then ends = next_entry(string.sub(member, 2), now) end
  if not ends or tonumber(ends) <= tonumber(now) then return nil end
  return ends
end

-- how many have expired or do so by then, and not yet: now → the rank of the first thing that has not expired
function ops.rank()
  return redis.call('ZCOUNT', prefix .. 'ends', '-inf', ARGV[2])
end

-- The reply of `ops.upcoming`, of the things of the wanted kinds; of all for nil.
local function step(wanted)
  local now, forever = ARGV[3], tonumber(ARGV[4])
  local some = redis.call('ZRANGE', prefix .. 'ends', ARGV[2], ARGV[2] + STEP - 1, 'WITHSCORES')
  local reply = {#some / 2, #some < 2 * STEP and 1 or 0}
  for i = 1, #some, 2 do
    if tonumber(some[i + 1]) >= forever then
      reply[2] = 1
      break
    end
    -- The kind comes first: most members are of others, and to look at a log costs a command.
    if not wanted or wanted[string.match(some[i], '^.([^|]*)')] then
      local ends = live(some[i], some[i + 1], now)
      if ends and tonumber(ends) < forever then
        reply[#reply + 1] = some[i]
        reply[#reply + 1] = ends
      end
    end
  end
  return reply
end

-- rank, now, forever → how many were looked at, whether that was all, then (letter and key, expiry)… from this rank on of
-- those that will expire
function ops.upcoming()
  return step(nil)
end

-- The same of the kinds that follow
function ops.things()
  local wanted = {}
  for i = 5, #ARGV do wanted[ARGV[i]] = true end
  return step(wanted)
end

-- keys of documents → the size of each
function ops.sizes()
  local reply = {}
  for i = 2, #ARGV do reply[i - 1] = redis.call('HSTRLEN', prefix .. 'd:' .. ARGV[i], 'v') end
  return reply
end

return ops[ARGV[1]]()
