-- Reads a namespace in steps, to be sorted by the caller. Steps see different states if data are written in between.

-- cursor → the next cursor, then for each thing: its letter, its key, and what is known of it
function ops.things()
  local cursor, members = unpack(redis.call('ZSCAN', prefix .. 'ends', ARGV[2], 'COUNT', 250))
  local found = {cursor}
  for i = 1, #members, 2 do
    local what, key = string.sub(members[i], 1, 1), string.sub(members[i], 2)
    local thing
    if what == 'd' then
      thing = redis.call('HMGET', prefix .. 'd:' .. key, 'e', 'v')
    elseif what == 'b' then
      thing = redis.call('HMGET', prefix .. 'b:' .. key, 'end', 'id', 'def', 'opens', 'closes', 'disabled', 'known',
        'voter', 'choice', 'choices')
    elseif what == 'l' then
      thing = {''}
    elseif what == 's' then
      thing = redis.call('HMGET', prefix .. 's:' .. key, 'end')
    elseif what == 'p' then
      thing = redis.call('HMGET', prefix .. 'p:' .. key, 'end', 'id', 'source', 'note')
    elseif what == 'g' then
      local id = string.sub(key, 1, 16)
      key = string.sub(key, 17)
      thing = {redis.call('HGET', prefix .. 'pg:' .. key, id), id}
    elseif what == 'q' then
      local id, roster = find_roster(key)
      thing = id and {roster[1], id, roster[2], roster[4]} or {false}
    end
    if thing[1] then found[#found + 1] = {what, key, unpack(thing)} end
  end
  return found
end

-- HSCAN or SSCAN, name without the prefix, cursor → the next cursor, then (field, value)… or members
function ops.scan()
  local cursor, found = unpack(redis.call(ARGV[2], prefix .. ARGV[3], ARGV[4], 'COUNT', 250))
  return {cursor, unpack(found)}
end

-- id of a ballot, cursor → the next cursor, then for each entry: voter, number, choice, times, cast at, note, whole
function ops.entries()
  local cursor, found = unpack(redis.call('HSCAN', prefix .. 'm:' .. ARGV[2] .. ':v', ARGV[3], 'COUNT', 250))
  local rows = {cursor}
  for i = 1, #found, 2 do
    for _, row in ipairs(cmsgpack.unpack(found[i + 1])) do
      rows[#rows + 1] = {found[i], row[1], row[2], row[3], row[4], row[5], row[6] or 0}
    end
  end
  return rows
end

-- key of a log, cursor → the next cursor, then for each entry: time, number and expiry in one, and value
function ops.items()
  local cursor, found = unpack(redis.call('ZSCAN', prefix .. 'l:' .. ARGV[2], ARGV[3], 'COUNT', 250))
  local rows = {cursor}
  for i = 1, #found, 2 do
    local value = redis.call('HGET', prefix .. 'lv:' .. ARGV[2], string.sub(found[i], 17, 32))
    if value then rows[#rows + 1] = {found[i], value} end
  end
  return rows
end

-- source → how many items are left
function ops.length()
  return redis.call('LLEN', prefix .. 'sl:' .. ARGV[2])
end

-- source, place from the end, how many → the items from there on. Draws take items from the front meanwhile.
function ops.list()
  local first = -ARGV[3]
  return redis.call('LRANGE', prefix .. 'sl:' .. ARGV[2], first, math.min(-1, first + ARGV[4] - 1))
end

-- → how many things there are
function ops.size()
  return redis.call('ZCARD', prefix .. 'ends')
end

-- → what all keys of the present generation begin with
function ops.prefix()
  return prefix
end

return ops[ARGV[1]]()
