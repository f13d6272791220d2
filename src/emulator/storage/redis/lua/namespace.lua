-- Fails where a write would: on a replica, and while memory is full. Writes nothing, and so leaves no key.
function ops.check()
  redis.call('COPY', KEYS[1] .. ':never', KEYS[1] .. ':nothing')
end

-- → seconds, microseconds
function ops.time()
  return redis.call('TIME')
end

-- → lines of `name:value`
function ops.info()
  return redis.call('INFO', 'memory') .. redis.call('INFO', 'persistence')
end

-- Note the format of new data. → that of the data
function ops.format(format)
  redis.call('SETNX', KEYS[1] .. ':format', format)
  return redis.call('GET', KEYS[1] .. ':format')
end

function ops.publish(channel, packet)
  redis.call('PUBLISH', channel, packet)
end

-- → how many things there are
function ops.size()
  return redis.call('ZCARD', prefix .. 'ends')
end

-- When the next entry of a log expires, if it has a live one.
local function next_entry(key, now)
  return redis.call('ZRANGEBYSCORE', prefix .. 'le:' .. key, '(' .. digits(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
end

-- The documents, ballots, logs and pools of some kinds, some at a time. → how many things were looked at, whether that
-- was all, then {letter and key, expiry, size of a document}… of the live ones from this rank on
function ops.expiries(rank, most, kinds, now)
  local wanted = {}
  for _, kind in ipairs(kinds) do wanted[kind] = true end
  local some = redis.call('ZRANGE', prefix .. 'ends', rank, rank + most - 1, 'WITHSCORES')
  local reply = {#some / 2, #some < 2 * most and 1 or 0}
  for i = 1, #some, 2 do
    local letter, key, ends = string.sub(some[i], 1, 1), string.sub(some[i], 2), some[i + 1]
    -- The kind comes first: most things are of others, and to look at a log costs a command.
    if wanted[string.match(key, '^[^|]*')] and string.find('dblp', letter, 1, true) then
      if letter == 'l' then ends = next_entry(key, now) end
      if ends and now < tonumber(ends) then
        local size = letter == 'd' and redis.call('HSTRLEN', prefix .. 'd:' .. key, 'v') or 0
        reply[#reply + 1] = {some[i], tonumber(ends), size}
      end
    end
  end
  return reply
end

-- Remove what has expired of a log. → how many entries, the expiry of the newest
local function purge_log(key, most, now)
  local by_expiry = prefix .. 'le:' .. key
  local expired = redis.call('ZRANGEBYSCORE', by_expiry, '-inf', now, 'LIMIT', 0, most)
  for _, item in ipairs(expired) do
    redis.call('ZREM', by_expiry, item)
    redis.call('ZREM', prefix .. 'l:' .. key, item)
    redis.call('HDEL', prefix .. 'lv:' .. key, string.sub(item, 17, 32))
  end
  local next_expiry = redis.call('ZRANGE', by_expiry, 0, 0, 'WITHSCORES')[2]
  if next_expiry then set_expiry('l' .. key, next_expiry) else remove.l(key) end
  return #expired, #expired > 0 and tonumber(string.sub(expired[#expired], 33, 48))
end

-- → how many things were removed, then {letter and key, expiry}… of the documents, ballots, logs and pools
function ops.purge(most, now)
  local reply, count = {0}, 0
  local expired = redis.call('ZRANGEBYSCORE', prefix .. 'ends', '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #expired, 2 do
    if count >= most then break end
    local letter, key, at = string.sub(expired[i], 1, 1), string.sub(expired[i], 2), tonumber(expired[i + 1])
    if letter == 'l' then
      local entries
      entries, at = purge_log(key, most, now)
      count = count + entries
    else
      remove[letter](key)
    end
    count = count + 1
    if at and string.find('dblp', letter, 1, true) then reply[#reply + 1] = {expired[i], at} end
  end
  reply[1] = count
  return reply
end

-- Remove ids of removed rosters from some members. → whether anything was left to do
function ops.sweep()
  local group, cursor = unpack(redis.call('HGETALL', prefix .. 'qd'))
  if not group then return 0 end
  local members, rosters = prefix .. 'qu:' .. group, prefix .. 'qi:' .. group
  local function without_removed(id)
    return redis.call('HEXISTS', rosters, id) == 0 and ''
  end
  local following, found = unpack(redis.call('HSCAN', members, cursor, 'COUNT', 250))
  for i = 1, #found, 2 do
    local ids = string.gsub(found[i + 1], '(%d+),', without_removed)
    if ids == '' then
      redis.call('HDEL', members, found[i])
    elseif ids ~= found[i + 1] then
      redis.call('HSET', members, found[i], ids)
    end
  end
  if following == '0' then redis.call('HDEL', prefix .. 'qd', group)
  else redis.call('HSET', prefix .. 'qd', group, following) end
  return 1
end

-- The keys of the previous generation are unreachable; `tidy` deletes them.
function ops.reset()
  show_generation(next_number())
end

-- → the generations of which keys may remain
function ops.dead()
  local dead = redis.call('ZRANGEBYSCORE', KEYS[1] .. ':dead', '-inf', redis.call('TIME')[1])
  for _, generation in ipairs(dead) do redis.call('ZADD', KEYS[1] .. ':dead', 0, generation) end
  return dead
end

-- Delete some keys of dead generations. → {the next cursor}
function ops.tidy(cursor, dead)
  local following, keys = unpack(redis.call('SCAN', cursor, 'MATCH', '{emulator|*', 'COUNT', 1000))
  for _, key in ipairs(keys) do
    for _, generation in ipairs(dead) do
      local start = KEYS[1] .. ':' .. generation .. ':'
      if string.sub(key, 1, #start) == start then redis.call('UNLINK', key) end
    end
  end
  if following == '0' then call_with('ZREM', KEYS[1] .. ':dead', dead) end
  return {following}
end
