-- r:<key without name>   hash: the name of each roster → its expiry and id, 16 digits each
-- rm:<id>                set: its members

-- key, now, expiry, members… → nothing
function ops.add_members()
  local key, ends = ARGV[2], ARGV[4]
  local group, name = split(key)
  local found = redis.call('HGET', prefix .. 'r:' .. group, name)
  local id = found and string.sub(found, 17)
  if found and tonumber(ARGV[3]) >= tonumber(string.sub(found, 1, 16)) then
    remove_roster(key, id)
    id = nil
  end
  id = id or next_number()
  redis.call('HSET', prefix .. 'r:' .. group, name, ends .. id)
  set_expiry('r' .. key, ends)
  for i = 5, #ARGV, 1000 do -- the stack holds no more
    redis.call('SADD', prefix .. 'rm:' .. id, unpack(ARGV, i, math.min(i + 999, #ARGV)))
  end
  return 1
end

-- key without name, now, members… → names
function ops.listing()
  local now, names = tonumber(ARGV[3]), {}
  local rosters = redis.call('HGETALL', prefix .. 'r:' .. ARGV[2])
  for i = 1, #rosters, 2 do
    local ends, id = string.sub(rosters[i + 1], 1, 16), string.sub(rosters[i + 1], 17)
    if now < tonumber(ends) then
      for j = 4, #ARGV do
        if redis.call('SISMEMBER', prefix .. 'rm:' .. id, ARGV[j]) == 1 then
          names[#names + 1] = rosters[i]
          break
        end
      end
    end
  end
  return names
end

-- keys… → nothing
function ops.drop()
  for i = 2, #ARGV do
    local group, name = split(ARGV[i])
    local found = redis.call('HGET', prefix .. 'r:' .. group, name)
    if found then remove_roster(ARGV[i], string.sub(found, 17)) end
  end
  return 1
end

return ops[ARGV[1]]()
