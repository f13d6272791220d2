-- The beginning of every script. KEYS[1] is the namespace. It holds the number of the namespace's generation, which a
-- reset or load replaces; all other keys begin with it, so that a cluster keeps them in one slot.
-- :numbers   the last number of `next_number`
-- :dead      sorted set: the generations whose keys `tidy` deletes, with 0, and those being loaded, with the time in
--            seconds after which the process that loads must have died
local prefix = KEYS[1] .. ':' .. (redis.call('GET', KEYS[1]) or '0') .. ':'
local ops = {} -- by name, with the arguments that Python gives; times are numbers
local listed, describe -- the letter of what `listing` lists, and what it returns of each; a script may set them

-- A number of 16 digits, which sorts as text.
local function digits(number)
  return string.format('%016.0f', number)
end

-- Numbers ascend across all processes and generations.
local function next_number()
  return digits(redis.call('INCR', KEYS[1] .. ':numbers'))
end

-- Make a generation the present one.
local function show_generation(number)
  redis.call('ZADD', KEYS[1] .. ':dead', 0, redis.call('GET', KEYS[1]) or '0')
  redis.call('ZREM', KEYS[1] .. ':dead', number)
  redis.call('SET', KEYS[1], number)
  prefix = KEYS[1] .. ':' .. number .. ':'
end

-- Call a command with any number of arguments; the stack holds no more than some thousand.
local function call_with(command, key, args)
  for i = 1, #args, 1000 do redis.call(command, key, unpack(args, i, math.min(i + 999, #args))) end
end

-- `what` is a letter for the kind of thing, then its key.
local function set_expiry(what, at)
  redis.call('ZADD', prefix .. 'ends', at, what)
end

local function clear_expiry(what)
  redis.call('ZREM', prefix .. 'ends', what)
end

-- The later of two times; the first may be missing, or text.
local function later(one, other)
  return math.max(tonumber(one or other), other)
end

-- All parts of a key but the last, and the last one, still escaped.
local function split(key)
  return string.match(key, '^(.*)|([^|]*)$')
end

local function unescape(part)
  return (string.gsub(part, '%%(%x%x)', function(code) return string.char(tonumber(code, 16)) end))
end

-- x<letter>:<kind and owner>  sorted set: the ballots or logs of an extension by channel, then name
local function index_of(what, key)
  local group, name, user, channel = string.match(key, '^([^|]*|[^|]*)|([^|]*)|([^|]*)|([^|]*)$')
  local place = string.gsub(channel .. '|' .. name .. '|' .. user, '%z', '%%00')
  return prefix .. 'x' .. what .. ':' .. group, (string.gsub(place, '|', '\0'))
end

-- <letter>p:<key without channel>  set: the channels
local function enlist(what, key)
  local group, channel = split(key)
  if redis.call('SADD', prefix .. what .. 'p:' .. group, channel) == 0 then return end
  local index, place = index_of(what, key)
  redis.call('ZADD', index, 0, place)
end

local function delist(what, key)
  local group, channel = split(key)
  redis.call('SREM', prefix .. what .. 'p:' .. group, channel)
  local index, place = index_of(what, key)
  redis.call('ZREM', index, place)
end

-- The keys of a group, whatever the channel.
local function keys_of_all_channels(what, group)
  local keys = redis.call('SMEMBERS', prefix .. what .. 'p:' .. group)
  for i, channel in ipairs(keys) do keys[i] = group .. '|' .. channel end
  return keys
end

-- Whether one of the parts of a key contains a text; '' is in all.
local function matches(text, ...)
  for _, part in ipairs({...}) do
    if string.find(unescape(part), text, 1, true) then return true end
  end
  return false
end

-- Look at some places of the index from `first` to `last`. → the last place ('' at the end), and then for each of the
-- things what `describe(key, now)` returns, with its place in front; things without are left out.
function ops.listing(group, first, last, now, most, text)
  local some = redis.call('ZRANGEBYLEX', prefix .. 'x' .. listed .. ':' .. group, first, last, 'LIMIT', 0, most)
  local reply = {#some < most and '' or some[#some]}
  for _, place in ipairs(some) do
    local channel, name, user = string.match(place, '^([^%z]*)%z([^%z]*)%z([^%z]*)$')
    local key = string.gsub(group .. '|' .. name .. '|' .. user .. '|' .. channel, '%%00', '\0')
    local found = matches(text, channel, name, user) and describe(key, now)
    if found then
      table.insert(found, 1, place)
      reply[#reply + 1] = found
    end
  end
  return reply
end

local function store_document(key, value, ends)
  redis.call('HSET', prefix .. 'd:' .. key, 'e', ends, 'n', next_number(), 'v', value)
  set_expiry('d' .. key, ends)
  local group, user = split(key)
  if user ~= '' then redis.call('ZADD', prefix .. 'dh:' .. group, 0, unescape(user)) end
end

local function append_entry(key, at, ends, value)
  local number = next_number()
  local item = digits(at) .. number .. digits(ends)
  redis.call('ZADD', prefix .. 'l:' .. key, 0, item)
  redis.call('HSET', prefix .. 'lv:' .. key, number, value)
  redis.call('ZADD', prefix .. 'le:' .. key, ends, item)
  redis.call('ZADD', prefix .. 'ends', 'LT', ends, 'l' .. key)
  enlist('l', key)
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

-- The items that a pool has handed to a user.
local function items_of(id, user)
  local packed = redis.call('HGET', prefix .. 'po:' .. id, user)
  return packed and cmsgpack.unpack(packed) or {}
end

local function hand_out(id, user, item)
  local items = items_of(id, user)
  items[#items + 1] = item
  redis.call('HSET', prefix .. 'po:' .. id, user, cmsgpack.pack(items))
end

-- Note that a family has handed out an item, by its digest. → whether that is new
local function spend(family, digest)
  redis.call('SADD', prefix .. 'pf', family)
  return redis.call('SADD', prefix .. 'ps:' .. family, digest) == 1
end

-- The id of a roster, if there is one, and {expiry, number, name, note}.
local function find_roster(key)
  local group, name = split(key)
  local id = redis.call('HGET', prefix .. 'q:' .. group, name)
  if id then return id, cmsgpack.unpack(redis.call('HGET', prefix .. 'qi:' .. group, id)) end
end

local function store_roster(key, id, ends, number, note)
  local group, name = split(key)
  redis.call('HSET', prefix .. 'q:' .. group, name, id)
  redis.call('HSET', prefix .. 'qi:' .. group, id, cmsgpack.pack({ends, number, name, note}))
  set_expiry('q' .. key, ends)
end

-- Removes a thing, if there is one. By letter: documents, ballots, logs, pools with their list and history, history,
-- lists with the pool that uses it, rosters.
local remove = {}

function remove.d(key)
  local group, user = split(key)
  redis.call('UNLINK', prefix .. 'd:' .. key)
  if user ~= '' then redis.call('ZREM', prefix .. 'dh:' .. group, unescape(user)) end
  clear_expiry('d' .. key)
end

function remove.b(key)
  local id = redis.call('HGET', prefix .. 'b:' .. key, 'id')
  if not id then return end
  local of = prefix .. 'm:' .. id
  redis.call('UNLINK', prefix .. 'b:' .. key, of .. ':v', of .. ':a', of .. ':t', of .. ':c', of .. ':r', of .. ':k')
  delist('b', key)
  clear_expiry('b' .. key)
end

function remove.l(key)
  redis.call('UNLINK', prefix .. 'l:' .. key, prefix .. 'le:' .. key, prefix .. 'lv:' .. key)
  delist('l', key)
  clear_expiry('l' .. key)
end

-- The key is the id of the pool, live or dropped, and its key.
function remove.g(id_and_key)
  local id, key = string.sub(id_and_key, 1, 16), string.sub(id_and_key, 17)
  redis.call('HDEL', prefix .. 'pg:' .. key, id)
  redis.call('UNLINK', prefix .. 'po:' .. id)
  clear_expiry('g' .. id_and_key)
end

local function remove_list(source)
  redis.call('UNLINK', prefix .. 's:' .. source, prefix .. 'sl:' .. source)
  clear_expiry('s' .. source)
end

function remove.p(key)
  local id, source = unpack(redis.call('HMGET', prefix .. 'p:' .. key, 'id', 'source'))
  if not id then return end
  remove_list(source)
  redis.call('UNLINK', prefix .. 'p:' .. key)
  clear_expiry('p' .. key)
  remove.g(id .. key)
end

function remove.s(source)
  local pool = redis.call('HGET', prefix .. 's:' .. source, 'pool')
  if pool then remove.p(pool) else remove_list(source) end
end

function remove.q(key)
  local id = find_roster(key)
  if not id then return end
  local group, name = split(key)
  redis.call('HDEL', prefix .. 'q:' .. group, name)
  redis.call('HDEL', prefix .. 'qi:' .. group, id)
  if redis.call('EXISTS', prefix .. 'q:' .. group) == 1 then
    redis.call('HSET', prefix .. 'qd', group, '0')
  else
    redis.call('UNLINK', prefix .. 'qu:' .. group)
    redis.call('HDEL', prefix .. 'qd', group)
  end
  clear_expiry('q' .. key)
end
