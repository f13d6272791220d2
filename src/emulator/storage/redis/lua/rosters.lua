-- A group is the key of a roster without its name.
-- q:<group>    hash: the name of each roster → its id
-- qi:<group>   hash: the id of each roster → {expiry, number, name, note}; the numbers are the order of the group
-- qu:<group>   hash: member → the ids of its rosters, each of 16 digits and a comma, also of some that were removed
-- qd           hash: the groups from which rosters were removed → how far `sweep` has looked at their members

-- key, now, expiry, members… → nothing
function ops.add_members()
  local key, ends = ARGV[2], ARGV[4]
  local id, roster = find_roster(key)
  if id and tonumber(ARGV[3]) >= tonumber(roster[1]) then
    remove_roster(key)
    id = nil
  end
  if not id then
    id = next_number()
    roster = {ends, id, '', ''}
  end
  store_roster(key, id, later(roster[1], ends), roster[2], roster[4])
  local members, own, added = prefix .. 'qu:' .. split(key), id .. ',', {}
  for first = 5, #ARGV, 1000 do -- the stack holds no more
    for i, ids in ipairs(redis.call('HMGET', members, unpack(ARGV, first, math.min(first + 999, #ARGV)))) do
      ids = ids or ''
      if not string.find(ids, own, 1, true) then
        added[#added + 1] = ARGV[first + i - 1]
        added[#added + 1] = ids .. own
      end
    end
  end
  call_with('HSET', members, added)
  return 1
end

-- key, now, expiry, note → whether there is such a roster
function ops.annotate()
  local id, roster = find_roster(ARGV[2])
  if not id or tonumber(ARGV[3]) >= tonumber(roster[1]) then return 0 end
  store_roster(ARGV[2], id, later(roster[1], ARGV[4]), next_number(), ARGV[5])
  return 1
end

-- group, now, members… → for each roster that has any, in order: expiry, number, name, note, positions of these members
function ops.listing()
  local group, now, known, found = ARGV[2], tonumber(ARGV[3]), {}, {}
  for first = 4, #ARGV, 1000 do
    local some = redis.call('HMGET', prefix .. 'qu:' .. group, unpack(ARGV, first, math.min(first + 999, #ARGV)))
    for i, ids in ipairs(some) do
      for id in string.gmatch(ids or '', '%d+') do
        if known[id] == nil then
          local packed = redis.call('HGET', prefix .. 'qi:' .. group, id)
          local roster = packed and cmsgpack.unpack(packed)
          known[id] = roster and now < tonumber(roster[1]) and roster
          if known[id] then found[#found + 1] = roster end
        end
        if known[id] then table.insert(known[id], first + i - 5) end
      end
    end
  end
  table.sort(found, function(one, other) return one[2] < other[2] end)
  return found
end

-- group, now, cursor → the next cursor, then (name, note)…
function ops.all()
  local cursor, found = unpack(redis.call('HSCAN', prefix .. 'qi:' .. ARGV[2], ARGV[4], 'COUNT', 100))
  local reply = {cursor}
  for i = 2, #found, 2 do
    local ends, _, name, note = unpack(cmsgpack.unpack(found[i]))
    if tonumber(ARGV[3]) < tonumber(ends) then
      reply[#reply + 1] = name
      reply[#reply + 1] = note
    end
  end
  return reply
end

-- keys… → nothing
function ops.drop()
  for i = 2, #ARGV do remove_roster(ARGV[i]) end
  return 1
end

-- → whether anything was left to do. Removes ids of removed rosters from some members.
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

return ops[ARGV[1]]()
