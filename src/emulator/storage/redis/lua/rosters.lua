-- A group is the key of a roster without its name.
-- q:<group>    hash: the name of each roster → its id
-- qi:<group>   hash: the id of each roster → {expiry, number, name, note}; the numbers are the order of the group
-- qu:<group>   hash: member → the ids of its rosters, each of 16 digits and a comma, also of some that were removed
-- qd           hash: the groups from which rosters were removed → how far `sweep` has looked at their members

-- For each of the members: the ids of its rosters.
local function ids_of_members(group, members)
  local ids = {}
  for first = 1, #members, 1000 do -- the stack holds no more
    local some = redis.call('HMGET', prefix .. 'qu:' .. group, unpack(members, first, math.min(first + 999, #members)))
    for _, each in ipairs(some) do ids[#ids + 1] = each or '' end
  end
  return ids
end

function ops.add_members(key, members, ends, now)
  local id, roster = find_roster(key)
  if id and now >= roster[1] then
    remove.q(key)
    id = nil
  end
  if not id then
    id = next_number()
    roster = {ends, id, '', ''}
  end
  store_roster(key, id, later(roster[1], ends), roster[2], roster[4])
  local own, added = id .. ',', {}
  for i, ids in ipairs(ids_of_members(split(key), members)) do
    if not string.find(ids, own, 1, true) then
      added[#added + 1] = members[i]
      added[#added + 1] = ids .. own
    end
  end
  call_with('HSET', prefix .. 'qu:' .. split(key), added)
end

-- → whether there is such a roster
function ops.annotate(key, note, ends, now)
  local id, roster = find_roster(key)
  if not id or now >= roster[1] then return 0 end
  store_roster(key, id, later(roster[1], ends), next_number(), note)
  return 1
end

-- → for each roster that has any of the members, in order: expiry, number, name, note, positions of these members
function ops.listing(group, members, now)
  local known, found = {}, {}
  for i, ids in ipairs(ids_of_members(group, members)) do
    for id in string.gmatch(ids, '%d+') do
      if known[id] == nil then
        local packed = redis.call('HGET', prefix .. 'qi:' .. group, id)
        local roster = packed and cmsgpack.unpack(packed)
        known[id] = roster and now < roster[1] and roster
        if known[id] then found[#found + 1] = roster end
      end
      if known[id] then table.insert(known[id], i - 1) end
    end
  end
  table.sort(found, function(one, other) return one[2] < other[2] end)
  return found
end

-- → the next cursor, then {name, note}…
function ops.all(cursor, group, now)
  local following, found = unpack(redis.call('HSCAN', prefix .. 'qi:' .. group, cursor, 'COUNT', 100))
  local reply = {following}
  for i = 2, #found, 2 do
    local ends, _, name, note = unpack(cmsgpack.unpack(found[i]))
    if now < ends then reply[#reply + 1] = {name, note} end
  end
  return reply
end

function ops.drop(keys)
  for _, key in ipairs(keys) do remove.q(key) end
end
