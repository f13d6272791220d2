-- Reads a namespace in steps, to be sorted by the caller. Steps see different states if data are written in between.
-- Operations with a cursor reply with the next cursor, then rows.

-- By letter: key and expiry of a thing, and what else is known of it.
local read = {}

function read.d(key)
  return {key, unpack(redis.call('HMGET', prefix .. 'd:' .. key, 'e', 'v'))}
end

function read.b(key)
  return {key, unpack(redis.call('HMGET', prefix .. 'b:' .. key, 'end', 'def', 'terms', 'id'))}
end

-- The entries of a log expire one by one.
function read.l(key)
  return {key, 9007199254740991}
end

function read.s(key)
  return {key, redis.call('HGET', prefix .. 's:' .. key, 'end')}
end

-- The place of a pool among the pools of its key.
local function number_of(key, id, now)
  for number, each in ipairs(pools_with_history(key, now)) do
    if each == id then return number end
  end
end

function read.p(key, now)
  local ends, id, source, note = unpack(redis.call('HMGET', prefix .. 'p:' .. key, 'end', 'id', 'source', 'note'))
  return {key, ends, number_of(key, id, now), id, source, note}
end

function read.g(id_and_key, now)
  local id, key = string.sub(id_and_key, 1, 16), string.sub(id_and_key, 17)
  return {key, redis.call('HGET', prefix .. 'pg:' .. key, id), number_of(key, id, now), id}
end

function read.q(key)
  local id, roster = find_roster(key)
  return id and {key, roster[1], tonumber(roster[2]), roster[4]} or {key, false}
end

-- {letter, key, expiry, …}…
function ops.things(cursor, now)
  local following, members = unpack(redis.call('ZSCAN', prefix .. 'ends', cursor, 'COUNT', 250))
  local rows = {following}
  for i = 1, #members, 2 do
    local letter = string.sub(members[i], 1, 1)
    local thing = read[letter](string.sub(members[i], 2), now)
    if thing[2] and now < tonumber(thing[2]) then
      thing[2] = tonumber(thing[2])
      rows[#rows + 1] = {letter, unpack(thing)}
    end
  end
  return rows
end

-- {choice, number}…
function ops.choices(cursor, id)
  local following, found = unpack(redis.call('HSCAN', prefix .. 'm:' .. id .. ':c', cursor, 'COUNT', 250))
  local rows = {following}
  for i = 1, #found, 2 do rows[#rows + 1] = {found[i], tonumber(found[i + 1])} end
  return rows
end

-- {number, time, expiry, value}…
function ops.entries(cursor, key, now)
  local following, found = unpack(redis.call('ZSCAN', prefix .. 'l:' .. key, cursor, 'COUNT', 250))
  local rows = {following}
  for i = 1, #found, 2 do
    local at, number, ends = string.sub(found[i], 1, 16), string.sub(found[i], 17, 32), string.sub(found[i], 33)
    local value = now < tonumber(ends) and redis.call('HGET', prefix .. 'lv:' .. key, number)
    if value then rows[#rows + 1] = {tonumber(number), tonumber(at), tonumber(ends), value} end
  end
  return rows
end

-- {position, items…}… The cursor is how many items from the end are not read; draws take items from the front meanwhile.
function ops.list(cursor, source)
  local left = tonumber(cursor)
  if left == 0 then left = redis.call('LLEN', prefix .. 'sl:' .. source) end
  local items = redis.call('LRANGE', prefix .. 'sl:' .. source, 0 - left, math.min(-1, 999 - left))
  local rows = {digits(math.max(0, left - 1000))}
  for i = 1, #items, 100 do -- `records.ITEMS_PER_RECORD`
    rows[#rows + 1] = {i - left, unpack(items, i, math.min(i + 99, #items))}
  end
  return rows
end

-- {user, {items…}}…
function ops.handed(cursor, id)
  local following, found = unpack(redis.call('HSCAN', prefix .. 'po:' .. id, cursor, 'COUNT', 250))
  local rows = {following}
  for i = 1, #found, 2 do rows[#rows + 1] = {found[i], cmsgpack.unpack(found[i + 1])} end
  return rows
end

-- {member, name of a live roster}…
function ops.members(cursor, group, now)
  local following, found = unpack(redis.call('HSCAN', prefix .. 'qu:' .. group, cursor, 'COUNT', 250))
  local rows = {following}
  for i = 1, #found, 2 do
    for id in string.gmatch(found[i + 1], '%d+') do
      local packed = redis.call('HGET', prefix .. 'qi:' .. group, id)
      local roster = packed and cmsgpack.unpack(packed)
      if roster and now < roster[1] then rows[#rows + 1] = {found[i], roster[3]} end
    end
  end
  return rows
end

-- → the families that have spent items
function ops.families()
  return redis.call('SMEMBERS', prefix .. 'pf')
end

-- digests…
function ops.spent(cursor, family)
  local following, digests = unpack(redis.call('SSCAN', prefix .. 'ps:' .. family, cursor, 'COUNT', 250))
  return {following, unpack(digests)}
end
