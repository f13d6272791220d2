-- d:<key>: a hash of the document's end `e`, its version `n` and its value `v`.
-- dh:<key without holder>: the holders, sorted by their bytes, which is the order of code points.

-- The version of a live document; '0' when there is none. Then whether a dead one is still in the place.
local function version(key, now)
  local found = redis.call('HMGET', space .. 'd:' .. key, 'e', 'n')
  if not found[1] then return '0', false end
  if now < tonumber(found[1]) then return found[2], false end
  return '0', found[1]
end

local function found(keys, first, now)
  local documents = {}
  for i = first, #keys do
    local ends, version, value = unpack(redis.call('HMGET', space .. 'd:' .. keys[i], 'e', 'n', 'v'))
    documents[i - first + 1] = ends and now < tonumber(ends) and {version, value}
  end
  return documents
end

-- now, keys… → for each: false, or its version and value
function ops.read()
  return found(ARGV, 3, tonumber(ARGV[2]))
end

-- now, end, how many were read, (key, version)…, (key, value)… → nothing; or, where these have other versions by now and
-- nothing was written, what `read` says of them
function ops.write()
  local now, ends, at = tonumber(ARGV[2]), ARGV[3], 5
  local keys, is_changed = {}, false
  for i = 1, tonumber(ARGV[4]) do
    keys[i] = ARGV[at]
    is_changed = is_changed or version(ARGV[at], now) ~= ARGV[at + 1]
    at = at + 2
  end
  if is_changed then return found(keys, 1, now) end
  for i = at, #ARGV, 2 do
    local key, value = ARGV[i], ARGV[i + 1]
    local _, dead = version(key, now)
    if dead then fell('d' .. key, dead) end
    redis.call('HSET', space .. 'd:' .. key, 'e', ends, 'n', number(), 'v', value)
    due('d' .. key, ends)
    local group, holder = parts(key)
    if holder ~= '' then redis.call('ZADD', space .. 'dh:' .. group, 0, plain(holder)) end
  end
  return false
end

-- now, keys… → how many were alive
function ops.drop()
  local now, alive = tonumber(ARGV[2]), 0
  for i = 3, #ARGV do
    local live, dead = version(ARGV[i], now)
    if live ~= '0' then alive = alive + 1 end
    if dead then fell('d' .. ARGV[i], dead) end
    if live ~= '0' or dead then take_document(ARGV[i]) end
  end
  return alive
end

-- now, key without holder, after, limit, (key without holder is text of keys; holders are plain) → holders
function ops.holders()
  local now, group, limit = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[5])
  local from, found = '(' .. ARGV[4], {}
  while #found < limit do
    local some = redis.call('ZRANGEBYLEX', space .. 'dh:' .. group, from, '+', 'LIMIT', 0, limit)
    for _, holder in ipairs(some) do
      local part = string.gsub(holder, '[%%|]', {['%'] = '%25', ['|'] = '%7C'})
      if #found < limit and version(group .. '|' .. part, now) ~= '0' then found[#found + 1] = holder end
    end
    if #some < limit then break end
    from = '(' .. some[#some]
  end
  return found
end

return ops[ARGV[1]]()
