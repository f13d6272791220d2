-- p:<key>       hash: a live pool: its `id`, `end`, `source`, `note`, `version` (new with each assignment), and how many
--               items it has `handed` out
-- pg:<key>      hash: the id of each pool of this key that has a history, dropped ones included → its expiry
-- ps:<family>   set: the items that the pools of a family have handed out, ever; a family is a key without its name
-- po:<id>       hash: c<user> → how many items the user has; <n>:<user> → the user's n-th item
-- s:<source>    hash: the `end` of a list, and the `pool` that uses it; then they expire together
-- sl:<source>   list: its remaining items

local function find(key)
  local id, ends, source, note, version, handed =
    unpack(redis.call('HMGET', prefix .. 'p:' .. key, 'id', 'end', 'source', 'note', 'version', 'handed'))
  if not id then return nil end
  return {id = id, ends = ends, source = source, note = note, version = version, handed = tonumber(handed)}
end

local function alive(key, now)
  local pool = find(key)
  return pool and now < tonumber(pool.ends) and pool or nil
end

local function find_list(source)
  local ends, pool = unpack(redis.call('HMGET', prefix .. 's:' .. source, 'end', 'pool'))
  return ends and {ends = ends, pool = pool}
end

-- Return a live list; remove an expired one, with its pool.
local function unless_expired(source, now)
  local list = find_list(source)
  if not list or now < tonumber(list.ends) then return list end
  if list.pool then remove_pool(list.pool) else remove_list(source) end
end

-- source, now, expiry, items… → 1, or 0 if a pool uses the list
function ops.fill()
  local source, ends = ARGV[2], ARGV[4]
  local list = unless_expired(source, tonumber(ARGV[3]))
  if list and list.pool then return 0 end
  ends = later(list and list.ends, ends)
  redis.call('HSET', prefix .. 's:' .. source, 'end', ends)
  set_expiry('s' .. source, ends)
  for i = 5, #ARGV, 1000 do -- the stack holds no more
    redis.call('RPUSH', prefix .. 'sl:' .. source, unpack(ARGV, i, math.min(i + 999, #ARGV)))
  end
  return 1
end

-- source, now, position → some items of a list from there on
function ops.items()
  local at = tonumber(ARGV[4])
  return unless_expired(ARGV[2], tonumber(ARGV[3]))
    and redis.call('LRANGE', prefix .. 'sl:' .. ARGV[2], at, at + 1999) or {}
end

-- now, keys… → for each: false, or version, source and note
function ops.stocks()
  local found = {}
  for i = 3, #ARGV do
    local pool = alive(ARGV[i], tonumber(ARGV[2]))
    found[i - 2] = pool and {pool.version, pool.source, pool.note} or false
  end
  return found
end

-- now, keys… → for each: false, or how many items were handed out and how many are left
function ops.counts()
  local found = {}
  for i = 3, #ARGV do
    local pool = alive(ARGV[i], tonumber(ARGV[2]))
    found[i - 2] = pool and {pool.handed, redis.call('LLEN', prefix .. 'sl:' .. pool.source)} or false
  end
  return found
end

local function assign(key, source, note, now, ends)
  local pool = find(key)
  if pool and now >= tonumber(pool.ends) then
    remove_pool(key)
    pool = nil
  end
  local list = unless_expired(source, now)
  ends = later(list and list.ends, later(pool and pool.ends, ends))
  if pool and pool.source ~= source then remove_list(pool.source) end
  local id = pool and pool.id or next_number()
  redis.call('HSET', prefix .. 'p:' .. key, 'id', id, 'end', ends, 'source', source, 'note', note,
    'version', next_number(), 'handed', pool and pool.handed or 0)
  redis.call('HSET', prefix .. 'pg:' .. key, id, ends)
  set_expiry('p' .. key, ends)
  redis.call('HSET', prefix .. 's:' .. source, 'end', ends, 'pool', key)
  clear_expiry('s' .. source)
end

-- now, expiry, how many were read, (key, version)…, how many sizes, (source, size)…, (key, source, note)… → 'done',
-- 'again' if a version has changed, 'short' if a list has fewer items than its size, or 'taken' and a source that another
-- pool uses
function ops.assign()
  local now, at = tonumber(ARGV[2]), 5
  for _ = 1, tonumber(ARGV[4]) do
    local pool = alive(ARGV[at], now)
    if (pool and pool.version or '0') ~= ARGV[at + 1] then return {'again'} end
    at = at + 2
  end
  local sizes_at = at + 1
  at = sizes_at + 2 * tonumber(ARGV[at])
  for i = at, #ARGV, 3 do
    local list = find_list(ARGV[i + 1])
    if list and list.pool and now < tonumber(list.ends) and list.pool ~= ARGV[i] then
      return {'taken', ARGV[i + 1]}
    end
  end
  for i = sizes_at, at - 1, 2 do
    local size = unless_expired(ARGV[i], now) and redis.call('LLEN', prefix .. 'sl:' .. ARGV[i]) or 0
    if size < tonumber(ARGV[i + 1]) then return {'short'} end
  end
  for i = at, #ARGV, 3 do assign(ARGV[i], ARGV[i + 1], ARGV[i + 2], now, ARGV[3]) end
  return {'done'}
end

-- sources… → nothing
function ops.discard()
  for i = 2, #ARGV do
    local list = find_list(ARGV[i])
    if list and not list.pool then remove_list(ARGV[i]) end
  end
  return 1
end

-- The ids of the pools of a key, in order, whose history has not expired.
local function pools_with_history(key, now)
  local ids, all = {}, redis.call('HGETALL', prefix .. 'pg:' .. key)
  for i = 1, #all, 2 do
    if now < tonumber(all[i + 1]) then ids[#ids + 1] = all[i] end
  end
  table.sort(ids)
  return ids
end

-- What the pools of a key handed to a user: how many items are from the current pool, then all items.
local function holding(key, user, now)
  local pool, current, items = alive(key, now), 0, {}
  for _, id in ipairs(pools_with_history(key, now)) do
    local of = prefix .. 'po:' .. id
    local before = #items
    for nth = 1, tonumber(redis.call('HGET', of, 'c' .. user) or '0') do
      local item = redis.call('HGET', of, string.format('%.0f:', nth) .. user)
      if not item then break end -- the count is not ours: a script that follows it might never end
      items[#items + 1] = item
    end
    if pool and id == pool.id then current = #items - before end
  end
  return {current, items}
end

-- key, family, user, now, how many items to skip, 1 to return what the user then holds, (most, the note that this is
-- for)? → 'note' and the present note if that is another one, 'more', or 'done', these items, and the drawn one if any
function ops.draw()
  local key, spent, user, now = ARGV[2], prefix .. 'ps:' .. ARGV[3], ARGV[4], tonumber(ARGV[5])
  local pool = alive(key, now)
  local function done(item) return {'done', ARGV[7] == '1' and holding(key, user, now)[2] or {}, item} end
  if not pool then return done() end
  if ARGV[9] ~= pool.note then return {'note', pool.note} end
  local of = prefix .. 'po:' .. pool.id
  local nth = tonumber(redis.call('HGET', of, 'c' .. user) or '0') + 1
  if nth > tonumber(ARGV[8]) then return done() end
  for _ = 0, tonumber(ARGV[6]) do
    local item = redis.call('LPOP', prefix .. 'sl:' .. pool.source)
    if not item then return done() end
    if redis.call('SADD', spent, item) == 1 then
      redis.call('HSET', of, 'c' .. user, nth, string.format('%.0f:', nth) .. user, item)
      redis.call('HINCRBY', prefix .. 'p:' .. key, 'handed', 1)
      return done(item)
    end
  end
  return {'more'}
end

-- key, family, now, how many items to skip → 1 if there may be more spent items at the front of the list, else 0
function ops.skip()
  local pool = alive(ARGV[2], tonumber(ARGV[4]))
  if not pool then return 0 end
  local list = prefix .. 'sl:' .. pool.source
  local items = redis.call('LRANGE', list, 0, ARGV[5] - 1)
  if #items == 0 then return 0 end
  local count = 0
  for _, is_spent in ipairs(redis.call('SMISMEMBER', prefix .. 'ps:' .. ARGV[3], unpack(items))) do
    if is_spent == 0 then break end
    count = count + 1
  end
  if count > 0 then redis.call('LPOP', list, count) end
  return count == #items and 1 or 0
end

-- user, now, keys… → for each: how many items are from the current pool, then all items
function ops.held()
  local found = {}
  for i = 4, #ARGV do found[i - 3] = holding(ARGV[i], ARGV[2], tonumber(ARGV[3])) end
  return found
end

-- now, keys… → for each: false, or how many items it had handed out
function ops.drop()
  local now, counts = tonumber(ARGV[2]), {}
  for i = 3, #ARGV do
    local key = ARGV[i]
    local pool = find(key)
    counts[i - 2] = false
    if pool and now >= tonumber(pool.ends) then
      remove_pool(key)
    elseif pool then
      counts[i - 2] = pool.handed
      if pool.handed == 0 then
        remove_pool(key)
      else
        remove_list(pool.source)
        redis.call('UNLINK', prefix .. 'p:' .. key)
        clear_expiry('p' .. key)
        set_expiry('g' .. pool.id .. key, pool.ends)
      end
    end
  end
  return counts
end

return ops[ARGV[1]]()
