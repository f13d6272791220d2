-- d:<key>                 hash: expiry `e`, version `n` and value `v` of a document
-- dh:<key without user>   sorted set: the users; Redis sorts them by bytes, which is the order of code points

-- The version of a live document, else '0'; then the expiry of a dead one that was not purged yet, else false.
local function version(key, now)
  local found = redis.call('HMGET', prefix .. 'd:' .. key, 'e', 'n')
  if not found[1] then return '0', false end
  if now < tonumber(found[1]) then return found[2], false end
  return '0', found[1]
end

-- For each key from index `first` on: false, or version and value.
local function read_all(keys, first, now)
  local documents = {}
  for i = first, #keys do
    local ends, version, value = unpack(redis.call('HMGET', prefix .. 'd:' .. keys[i], 'e', 'n', 'v'))
    documents[i - first + 1] = ends and now < tonumber(ends) and {version, value}
  end
  return documents
end

-- now, keys… → for each: false, or version and value
function ops.read()
  return read_all(ARGV, 3, tonumber(ARGV[2]))
end

-- now, expiry, '1' if a live document may end earlier than before, how many were read, (key, version)…, (key, value)… →
-- nothing; if a version has changed, it writes nothing and replies as `read` does
function ops.write()
  local now, ends, at = tonumber(ARGV[2]), ARGV[3], 6
  local keys, is_changed = {}, false
  for i = 1, tonumber(ARGV[5]) do
    keys[i] = ARGV[at]
    is_changed = is_changed or version(ARGV[at], now) ~= ARGV[at + 1]
    at = at + 2
  end
  if is_changed then return read_all(keys, 1, now) end
  for i = at, #ARGV, 2 do
    local key, value = ARGV[i], ARGV[i + 1]
    store_document(key, value, ARGV[4] == '1' and ends or later(redis.call('HGET', prefix .. 'd:' .. key, 'e'), ends))
  end
  return false
end

-- an empty text, (now, key)… → for each: false, or the value
function ops.peek()
  local found = {}
  for i = 3, #ARGV, 2 do
    local ends, value = unpack(redis.call('HMGET', prefix .. 'd:' .. ARGV[i + 1], 'e', 'v'))
    found[#found + 1] = ends and tonumber(ARGV[i]) < tonumber(ends) and value
  end
  return found
end

-- an empty text, (now, expiry, '1' to replace another value or '0', key, value)… → for each: the live value that stays, or false
function ops.keep()
  local number, expiries, users, found = nil, {}, {}, {}
  for i = 3, #ARGV, 5 do
    local now, ends, replaces, key, value = unpack(ARGV, i, i + 4)
    local before, held = unpack(redis.call('HMGET', prefix .. 'd:' .. key, 'e', 'v'))
    local is_kept = before and replaces == '0' and tonumber(now) < tonumber(before)
    if is_kept then value = held end
    found[#found + 1] = is_kept and held
    if held ~= value or before < ends then
      ends, number = later(before, ends), number or next_number()
      redis.call('HSET', prefix .. 'd:' .. key, 'e', ends, 'n', number, 'v', value)
      expiries[#expiries + 1] = ends
      expiries[#expiries + 1] = 'd' .. key
      local group, user = split(key)
      if user ~= '' then
        users[group] = users[group] or {}
        table.insert(users[group], '0')
        table.insert(users[group], unescape(user))
      end
    end
  end
  call_with('ZADD', prefix .. 'ends', expiries)
  for group, names in pairs(users) do call_with('ZADD', prefix .. 'dh:' .. group, names) end
  return found
end

-- now, keys… → how many were alive
function ops.drop()
  local now, count = tonumber(ARGV[2]), 0
  for i = 3, #ARGV do
    local live, dead = version(ARGV[i], now)
    if live ~= '0' then count = count + 1 end
    if live ~= '0' or dead then remove_document(ARGV[i]) end
  end
  return count
end

-- now, key, value → nothing; removes the document if it is alive and has this value
function ops.drop_equal()
  local live = version(ARGV[3], tonumber(ARGV[2]))
  if live ~= '0' and redis.call('HGET', prefix .. 'd:' .. ARGV[3], 'v') == ARGV[4] then remove_document(ARGV[3]) end
end

-- now, key without user (escaped), after (unescaped), limit → users (unescaped)
function ops.users()
  local now, group, limit = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[5])
  local from, found = '(' .. ARGV[4], {}
  while #found < limit do
    local some = redis.call('ZRANGEBYLEX', prefix .. 'dh:' .. group, from, '+', 'LIMIT', 0, limit)
    for _, user in ipairs(some) do
      local part = string.gsub(user, '[%%|]', {['%'] = '%25', ['|'] = '%7C'})
      if #found < limit and version(group .. '|' .. part, now) ~= '0' then found[#found + 1] = user end
    end
    if #some < limit then break end
    from = '(' .. some[#some]
  end
  return found
end

return ops[ARGV[1]]()
