-- r:<key without name>   hash: the name of each roster → its expiry and id, 16 digits each
-- rm:<id>                set: its members

-- key, now, expiry, members… → how many are new
function ops.add_members()
  local key, ends = ARGV[2], ARGV[4]
  local group, name = split(key)
  local id, before = find_roster(key)
  if id and tonumber(ARGV[3]) >= tonumber(before) then
    remove_roster(key)
    id, before = nil, nil
  end
  ends = later(before, ends)
  id = id or next_number()
  redis.call('HSET', prefix .. 'r:' .. group, name, ends .. id)
  set_expiry('r' .. key, ends)
  local added = 0
  for i = 5, #ARGV, 1000 do -- the stack holds no more
    added = added + redis.call('SADD', prefix .. 'rm:' .. id, unpack(ARGV, i, math.min(i + 999, #ARGV)))
  end
  return added
end

-- key without name, now, members… → for each roster that has any: its name, then the positions of these members from 0
function ops.listing()
  local now, names = tonumber(ARGV[3]), {}
  local rosters = redis.call('HGETALL', prefix .. 'r:' .. ARGV[2])
  for i = 1, #rosters, 2 do
    local ends, id = string.sub(rosters[i + 1], 1, 16), string.sub(rosters[i + 1], 17)
    if now < tonumber(ends) then
      local found = {rosters[i]}
      for first = 4, #ARGV, 1000 do
        local on = redis.call('SMISMEMBER', prefix .. 'rm:' .. id, unpack(ARGV, first, math.min(first + 999, #ARGV)))
        for j, is_on in ipairs(on) do
          if is_on == 1 then found[#found + 1] = first + j - 5 end
        end
      end
      if #found > 1 then names[#names + 1] = found end
    end
  end
  return names
end

-- keys… → nothing
function ops.drop()
  for i = 2, #ARGV do remove_roster(ARGV[i]) end
  return 1
end

return ops[ARGV[1]]()
