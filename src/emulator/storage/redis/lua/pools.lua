-- p:<key>       hash: a live pool: its `id`, `end`, `source`, `note`, `version` (new with each assignment), and how many
--               items it has `handed` out
-- pg:<key>      hash: the id of each pool of this key that has a history, dropped ones included → its expiry
-- pf            set: the families whose pools have handed out items; a family is a key without its name
-- ps:<family>   set: the digests of the items that the pools of a family have handed out, ever
-- po:<id>       hash: user → the items that the pool has handed to the user
-- s:<source>    hash: the `end` of a list, and the `pool` that uses it; then they expire together
-- sl:<source>   list: its remaining items

local function find(key)
  local id, ends, source, note, version, handed =
    unpack(redis.call('HMGET', prefix .. 'p:' .. key, 'id', 'end', 'source', 'note', 'version', 'handed'))
  if not id then return nil end
  return {id = id, ends = tonumber(ends), source = source, note = note, version = version, handed = tonumber(handed)}
end

local function alive(key, now)
  local pool = find(key)
  return pool and now < pool.ends and pool or nil
end

local function find_list(source)
  local ends, pool = unpack(redis.call('HMGET', prefix .. 's:' .. source, 'end', 'pool'))
  return ends and {ends = tonumber(ends), pool = pool}
end

-- Return a live list; remove an expired one, with its pool.
local function unless_expired(source, now)
  local list = find_list(source)
  if not list or now < list.ends then return list end
  remove.s(source)
end

-- The digest of `records.item_digest`, in hex.
local function item_digest(item)
  return string.sub(redis.sha1hex(item), 1, 32)
end

-- → 1, or 0 if a pool uses the list
function ops.fill(source, items, ends, now)
  local list = unless_expired(source, now)
  if list and list.pool then return 0 end
  ends = later(list and list.ends, ends)
  redis.call('HSET', prefix .. 's:' .. source, 'end', ends)
  set_expiry('s' .. source, ends)
  call_with('RPUSH', prefix .. 'sl:' .. source, items)
  return 1
end

-- → some items of a list from a position on
function ops.items(source, at, now)
  return unless_expired(source, now) and redis.call('LRANGE', prefix .. 'sl:' .. source, at, at + 1999) or {}
end

-- → for each key: false, or version, source and note
function ops.stocks(keys, now)
  local found = {}
  for i, key in ipairs(keys) do
    local pool = alive(key, now)
    found[i] = pool and {pool.version, pool.source, pool.note} or false
  end
  return found
end

-- → for each key: false, or how many items were handed out and how many are left
function ops.counts(keys, now)
  local found = {}
  for i, key in ipairs(keys) do
    local pool = alive(key, now)
    found[i] = pool and {pool.handed, redis.call('LLEN', prefix .. 'sl:' .. pool.source)} or false
  end
  return found
end

local function assign(key, source, note, ends, now)
  local pool = find(key)
  if pool and now >= pool.ends then
    remove.p(key)
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

-- keys, the version that each had, {source, least size}…, {key, source, note}… → 'done', 'again' if a version has changed,
-- 'short' if a list has fewer items, or 'taken' and a source that another pool uses
function ops.assign(keys, versions, sizes, assignments, ends, now)
  for i, key in ipairs(keys) do
    local pool = alive(key, now)
    if (pool and pool.version or '0') ~= versions[i] then return {'again'} end
  end
  for _, each in ipairs(assignments) do
    local list = find_list(each[2])
    if list and list.pool and now < list.ends and list.pool ~= each[1] then return {'taken', each[2]} end
  end
  for _, each in ipairs(sizes) do
    local size = unless_expired(each[1], now) and redis.call('LLEN', prefix .. 'sl:' .. each[1]) or 0
    if size < each[2] then return {'short'} end
  end
  for _, each in ipairs(assignments) do assign(each[1], each[2], each[3], ends, now) end
  return {'done'}
end

function ops.discard(sources)
  for _, source in ipairs(sources) do
    local list = find_list(source)
    if list and not list.pool then remove_list(source) end
  end
end

-- What the pools of a key handed to a user: how many items are from the current pool, then all items.
local function holding(key, user, now)
  local pool, current, all = alive(key, now), 0, {}
  for _, id in ipairs(pools_with_history(key, now)) do
    local items = items_of(id, user)
    for _, item in ipairs(items) do all[#all + 1] = item end
    if pool and id == pool.id then current = #items end
  end
  return {current, all}
end

-- Hand out the next item, for `note`, unless the user has `limit` items of the pool; skip at most `most`. → 'note' and the
-- present note if that is another one, 'more', or 'done', what the user then holds if wanted, and the drawn item if any
function ops.draw(key, family, user, most, wants_held, note, limit, now)
  local pool = alive(key, now)
  local function done(item) return {'done', wants_held and holding(key, user, now)[2] or {}, item} end
  if not pool then return done() end
  if note ~= pool.note then return {'note', pool.note} end
  if #items_of(pool.id, user) >= limit then return done() end
  for _ = 0, most do
    local item = redis.call('LPOP', prefix .. 'sl:' .. pool.source)
    if not item then return done() end
    if spend(family, item_digest(item)) then
      hand_out(pool.id, user, item)
      redis.call('HINCRBY', prefix .. 'p:' .. key, 'handed', 1)
      return done(item)
    end
  end
  return {'more'}
end

-- Skip spent items at the front of a list. → 1 if there may be more of them, else 0
function ops.skip(key, family, most, now)
  local pool = alive(key, now)
  local list = pool and prefix .. 'sl:' .. pool.source
  local items = pool and redis.call('LRANGE', list, 0, most - 1) or {}
  local count = 0
  for _, item in ipairs(items) do
    if redis.call('SISMEMBER', prefix .. 'ps:' .. family, item_digest(item)) == 0 then break end
    count = count + 1
  end
  if count > 0 then redis.call('LPOP', list, count) end
  return count > 0 and count == #items and 1 or 0
end

-- → for each key: how many items are from the current pool, then all items
function ops.held(keys, user, now)
  local found = {}
  for i, key in ipairs(keys) do found[i] = holding(key, user, now) end
  return found
end

-- → for each key: false, or how many items it had handed out
function ops.drop(keys, now)
  local counts = {}
  for i, key in ipairs(keys) do
    local pool = find(key)
    counts[i] = pool and now < pool.ends and pool.handed or false
    if counts[i] and counts[i] > 0 then
      remove_list(pool.source)
      redis.call('UNLINK', prefix .. 'p:' .. key)
      clear_expiry('p' .. key)
      set_expiry('g' .. pool.id .. key, pool.ends)
    else
      remove.p(key)
    end
  end
  return counts
end
