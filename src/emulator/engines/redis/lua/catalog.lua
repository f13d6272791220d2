-- Finds things by kind and by expiry. Steps see different states if data are written in between.
local STEP = 500

-- When the next entry of a log expires, if it has a live one.
local function next_entry(key, now)
  local found = redis.call('ZRANGEBYSCORE', prefix .. 'le:' .. key, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return found[2]
end

-- The letter, the key and the expiry of a document, ballot, log or pool that has not expired; nothing for other members.
local function live(member, ends, now)
  local what, key = string.sub(member, 1, 1), string.sub(member, 2)
  if not string.find('dblp', what, 1, true) then return nil end
  if what == 'l' then ends = next_entry(key, now) end
  if not ends or tonumber(ends) <= tonumber(now) then return nil end
  return what, key, ends
end

-- how many have expired or do so by then, and not yet: now → the rank of the first thing that has not expired
function ops.rank()
  return redis.call('ZCOUNT', prefix .. 'ends', '-inf', ARGV[2])
end

-- rank, now, forever → how many were looked at, whether that was all, then (letter and key, expiry)… from this rank on of
-- those that will expire
function ops.upcoming()
  local now, forever = ARGV[3], tonumber(ARGV[4])
  local some = redis.call('ZRANGE', prefix .. 'ends', ARGV[2], ARGV[2] + STEP - 1, 'WITHSCORES')
  local reply = {#some / 2, #some < 2 * STEP and 1 or 0}
  for i = 1, #some, 2 do
    if tonumber(some[i + 1]) >= forever then
      reply[2] = 1
      break
    end
    local what, key, ends = live(some[i], some[i + 1], now)
    if what and tonumber(ends) < forever then
      reply[#reply + 1] = what .. key
      reply[#reply + 1] = ends
    end
  end
  return reply
end

-- The same of the kinds that follow, each with the size of a document at the end, by `ops.things`
function ops.things()
  local wanted, kinds = {}, {}
  for i = 5, #ARGV do wanted[ARGV[i]] = true end
  local found = ops.upcoming()
  local reply = {found[1], found[2]}
  for i = 3, #found, 2 do
    local what, key = string.sub(found[i], 1, 1), string.sub(found[i], 2)
    if wanted[string.match(key, '^[^|]*')] then
      local size = what == 'd' and redis.call('HSTRLEN', prefix .. 'd:' .. key, 'v') or 0
      reply[#reply + 1] = found[i]
      reply[#reply + 1] = found[i + 1]
      reply[#reply + 1] = size
    end
  end
  return reply
end

return ops[ARGV[1]]()
