-- p:<key>: the pool that hands out now: its `id`, `end`, `source`, `note`, `version` (new with every supply) and how many
-- it has `handed` out. pg:<key>: the id of each pool of this key that is remembered → its end.
-- pi:<id>: what it handed out · po:<id>: c<holder> → how many, <n>:<holder> → the holder's n-th.
-- s:<source>: the `end` of a list, and the `pool` that hands out from it, then with its end · sl:<source>: its items.

local function pool_of(key)
  local id, ends, source, note, version, handed =
    unpack(redis.call('HMGET', space .. 'p:' .. key, 'id', 'end', 'source', 'note', 'version', 'handed'))
  if not id then return nil end
  return {id = id, ends = ends, source = source, note = note, version = version, handed = tonumber(handed)}
end

local function alive(key, now)
  local pool = pool_of(key)
  return pool and now < tonumber(pool.ends) and pool or nil
end

-- A pool that is past its end goes.
local function finish(key, pool)
  fell('p' .. key, pool.ends)
  take_pool(key)
end

local function list_of(source)
  local ends, pool = unpack(redis.call('HMGET', space .. 's:' .. source, 'end', 'pool'))
  return ends and {ends = ends, pool = pool}
end

-- The list, which is taken away first if it is past its end.
local function live_list(source, now)
  local list = list_of(source)
  if not list or now < tonumber(list.ends) then return list end
  if list.pool then finish(list.pool, pool_of(list.pool)) else take_list(source) end
end

-- source, now, end, items… → whether no pool hands out from it
function ops.fill()
  local source, ends = ARGV[2], ARGV[4]
  local list = live_list(source, tonumber(ARGV[3]))
  if list and list.pool then return 0 end
  redis.call('HSET', space .. 's:' .. source, 'end', ends)
  due('s' .. source, ends)
  for i = 5, #ARGV, 1000 do -- more do not fit on the stack
    redis.call('RPUSH', space .. 'sl:' .. source, unpack(ARGV, i, math.min(i + 999, #ARGV)))
  end
  return 1
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

local function give(key, source, note, now, ends)
  local pool = pool_of(key)
  if pool and now >= tonumber(pool.ends) then
    finish(key, pool)
    pool = nil
  end
  live_list(source, now)
  if pool and pool.source ~= source then take_list(pool.source) end
  local id = pool and pool.id or number()
  redis.call('HSET', space .. 'p:' .. key, 'id', id, 'end', ends, 'source', source, 'note', note, 'version', number(),
    'handed', pool and pool.handed or 0)
  redis.call('HSET', space .. 'pg:' .. key, id, ends)
  due('p' .. key, ends)
  redis.call('HSET', space .. 's:' .. source, 'end', ends, 'pool', key)
  not_due('s' .. source)
end

-- now, end, how many were read, (key, version)…, (key, source, note)… → 'again' if these have other versions by now,
-- a source that another pool hands out from, or nothing
function ops.supply()
  local now, at = tonumber(ARGV[2]), 5
  for _ = 1, tonumber(ARGV[4]) do
    local pool = alive(ARGV[at], now)
    if (pool and pool.version or '0') ~= ARGV[at + 1] then return {'again'} end
    at = at + 2
  end
  for i = at, #ARGV, 3 do
    local list = list_of(ARGV[i + 1])
    if list and list.pool and now < tonumber(list.ends) and list.pool ~= ARGV[i] then
      return {'taken', ARGV[i + 1]}
    end
  end
  for i = at, #ARGV, 3 do give(ARGV[i], ARGV[i + 1], ARGV[i + 2], now, ARGV[3]) end
  return {'done'}
end

-- sources… → nothing
function ops.discard()
  for i = 2, #ARGV do
    local list = list_of(ARGV[i])
    if list and not list.pool then take_list(ARGV[i]) end
  end
  return 1
end

local function remembered(key, now)
  local ids, all = {}, redis.call('HGETALL', space .. 'pg:' .. key)
  for i = 1, #all, 2 do
    if now < tonumber(all[i + 1]) then ids[#ids + 1] = all[i] end
  end
  table.sort(ids)
  return ids
end

-- key, holder, most, now, how many items to pass over, source or '' → 'none', 'more', or 'item' and the item
function ops.draw()
  local key, holder, most, now = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
  local pool = alive(key, now)
  if not pool or (ARGV[7] ~= '' and ARGV[7] ~= pool.source) then return {'none'} end
  local of = space .. 'po:' .. pool.id
  local nth = tonumber(redis.call('HGET', of, 'c' .. holder) or '0') + 1
  if nth > most then return {'none'} end
  local ids = remembered(key, now)
  for _ = 0, tonumber(ARGV[6]) do
    local item = redis.call('LPOP', space .. 'sl:' .. pool.source)
    if not item then return {'none'} end
    local is_known = false
    for _, id in ipairs(ids) do
      is_known = is_known or redis.call('SISMEMBER', space .. 'pi:' .. id, item) == 1
    end
    if not is_known then
      redis.call('SADD', space .. 'pi:' .. pool.id, item)
      redis.call('HSET', of, 'c' .. holder, nth, string.format('%.0f:', nth) .. holder, item)
      redis.call('HINCRBY', space .. 'p:' .. key, 'handed', 1)
      return {'item', item}
    end
  end
  return {'more'}
end

-- holder, now, keys… → for each: how many are from the pool as it is, then all items
function ops.held()
  local holder, now, found = ARGV[2], tonumber(ARGV[3]), {}
  for i = 4, #ARGV do
    local pool, current, items = alive(ARGV[i], now), 0, {}
    for _, id in ipairs(remembered(ARGV[i], now)) do
      local of = space .. 'po:' .. id
      local count = tonumber(redis.call('HGET', of, 'c' .. holder) or '0')
      for nth = 1, count do
        items[#items + 1] = redis.call('HGET', of, string.format('%.0f:', nth) .. holder)
      end
      if pool and id == pool.id then current = count end
    end
    found[i - 3] = {current, items}
  end
  return found
end

-- now, keys… → for each: false, or how many it had handed out
function ops.drop()
  local now, counts = tonumber(ARGV[2]), {}
  for i = 3, #ARGV do
    local key = ARGV[i]
    local pool = pool_of(key)
    counts[i - 2] = false
    if pool and now >= tonumber(pool.ends) then
      finish(key, pool)
    elseif pool then
      counts[i - 2] = pool.handed
      if pool.handed == 0 then
        take_pool(key)
      else
        take_list(pool.source)
        redis.call('UNLINK', space .. 'p:' .. key)
        not_due('p' .. key)
        due('g' .. pool.id .. key, pool.ends)
      end
    end
  end
  return counts
end

return ops[ARGV[1]]()
