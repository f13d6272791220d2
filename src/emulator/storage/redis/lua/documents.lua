-- d:<key>                 hash: expiry `e`, version `n` and value `v` of a document
-- dh:<key without user>   sorted set: the users; Redis sorts them by bytes, which is the order of code points

-- The version of a live document, else '0'.
local function version(key, now)
  local ends, found = unpack(redis.call('HMGET', prefix .. 'd:' .. key, 'e', 'n'))
  return ends and now < tonumber(ends) and found or '0'
end

-- → for each key: false, or version and value
function ops.read(keys, now)
  local documents = {}
  for i, key in ipairs(keys) do
    local ends, found, value = unpack(redis.call('HMGET', prefix .. 'd:' .. key, 'e', 'n', 'v'))
    documents[i] = ends and now < tonumber(ends) and {found, value}
  end
  return documents
end

-- keys, the version that each had, {key, value}…, expiry, whether a live document may end earlier than before, now →
-- nothing; if a version has changed, it writes nothing and replies as `read` does
function ops.write(keys, versions, writes, ends, may_end_earlier, now)
  for i, key in ipairs(keys) do
    if version(key, now) ~= versions[i] then return ops.read(keys, now) end
  end
  for _, write in ipairs(writes) do
    local key, value = unpack(write)
    store_document(key, value, may_end_earlier and ends or later(redis.call('HGET', prefix .. 'd:' .. key, 'e'), ends))
  end
end

-- {key, value}…, whether to replace another value, expiry, now → for each: the live value that stays, or false
function ops.keep(documents, replaces, ends, now)
  local found = {}
  for i, document in ipairs(documents) do
    local key, value = unpack(document)
    local before, held = unpack(redis.call('HMGET', prefix .. 'd:' .. key, 'e', 'v'))
    local is_kept = before and not replaces and now < tonumber(before)
    if is_kept then value = held end
    found[i] = is_kept and held
    if held ~= value or tonumber(before) < ends then store_document(key, value, later(before, ends)) end
  end
  return found
end

-- → how many were alive
function ops.drop(keys, now)
  local count = 0
  for _, key in ipairs(keys) do
    if version(key, now) ~= '0' then count = count + 1 end
    remove.d(key)
  end
  return count
end

-- Remove the document if it is alive and has this value.
function ops.drop_equal(key, value, now)
  if version(key, now) ~= '0' and redis.call('HGET', prefix .. 'd:' .. key, 'v') == value then remove.d(key) end
end

-- key without user (escaped), after (unescaped) → users (unescaped)
function ops.users(group, after, limit, now)
  local from, found = '(' .. after, {}
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
