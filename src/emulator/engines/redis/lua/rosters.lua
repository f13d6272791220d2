-- r:<key without name>: the name of each roster → its end and id, 16 digits each · rm:<id>: its members.

-- key, now, end, members… → nothing
function ops.enlist()
  local key, ends = ARGV[2], ARGV[4]
  local group, name = parts(key)
  local found = redis.call('HGET', space .. 'r:' .. group, name)
  local id = found and string.sub(found, 17)
  if found and tonumber(ARGV[3]) >= tonumber(string.sub(found, 1, 16)) then
    take_roster(key, id)
    id = nil
  end
  id = id or number()
  redis.call('HSET', space .. 'r:' .. group, name, ends .. id)
  due('r' .. key, ends)
  for i = 5, #ARGV, 1000 do -- more do not fit on the stack
    redis.call('SADD', space .. 'rm:' .. id, unpack(ARGV, i, math.min(i + 999, #ARGV)))
  end
  return 1
end

-- key without name, now, members… → names
function ops.listing()
  local now, names = tonumber(ARGV[3]), {}
  local rosters = redis.call('HGETALL', space .. 'r:' .. ARGV[2])
  for i = 1, #rosters, 2 do
    local ends, id = string.sub(rosters[i + 1], 1, 16), string.sub(rosters[i + 1], 17)
    if now < tonumber(ends) then
      for j = 4, #ARGV do
        if redis.call('SISMEMBER', space .. 'rm:' .. id, ARGV[j]) == 1 then
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
    local group, name = parts(ARGV[i])
    local found = redis.call('HGET', space .. 'r:' .. group, name)
    if found then take_roster(ARGV[i], string.sub(found, 17)) end
  end
  return 1
end

return ops[ARGV[1]]()
