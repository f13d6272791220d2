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

-- rank, now, kinds… → how many were looked at, whether that was all, then (letter and key, expiry)… of the live things of
-- these kinds from this rank on
function ops.things()
  local now, wanted = ARGV[3], {}
  for i = 4, #ARGV do wanted[ARGV[i]] = true end
  local some = redis.call('ZRANGE', prefix .. 'ends', ARGV[2], ARGV[2] + STEP - 1, 'WITHSCORES')
  local reply = {#some / 2, #some < 2 * STEP and 1 or 0}
  for i = 1, #some, 2 do
    -- The kind comes first: most members are of others, and to look at a log costs a command.
    if wanted[string.match(some[i], '^.([^|]*)')] then
      local ends = live(some[i], some[i + 1], now)
      if ends then
        reply[#reply + 1] = some[i]
        reply[#reply + 1] = ends
      end
    end
  end
  return reply
end

-- keys of documents → the size of each
function ops.sizes()
  local reply = {}
  for i = 2, #ARGV do reply[i - 1] = redis.call('HSTRLEN', prefix .. 'd:' .. ARGV[i], 'v') end
  return reply
end

return ops[ARGV[1]]()
