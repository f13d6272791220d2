-- The beginning of every script. KEYS[1] is the namespace. It holds the number of the namespace's generation, which a
-- reset or load replaces; all other keys begin with it, so that a cluster keeps them in one slot.
-- :numbers   the last number of `next_number`
-- :dead      sorted set: the generations whose keys `tidy` deletes, with 0, and those being loaded, with the time in
--            seconds after which the process that loads must have died
local prefix = KEYS[1] .. ':' .. (redis.call('GET', KEYS[1]) or '0') .. ':'
local ops = {}
local listed, describe -- the letter of what `listing` lists, and what it returns of each; a script may set them

-- Numbers ascend across all processes and generations. As text of 16 digits they sort correctly, as times do.
local function next_number()
  return string.format('%016.0f', redis.call('INCR', KEYS[1] .. ':numbers'))
end

-- Make a generation the present one.
local function show_generation(number)
  redis.call('ZADD', KEYS[1] .. ':dead', 0, redis.call('GET', KEYS[1]) or '0')
  redis.call('ZREM', KEYS[1] .. ':dead', number)
  redis.call('SET', KEYS[1], number)
end

-- Call a command with any number of arguments; the stack holds no more than some thousand.
local function call_with(command, key, args)
  for i = 1, #args, 1000 do redis.call(command, key, unpack(args, i, math.min(i + 999, #args))) end
end

-- `what` is a letter for the kind of thing, then its key.
local function set_expiry(what, at)
  redis.call('ZADD', prefix .. 'ends', at, what)
end

-- The later of two times as text of 16 digits; the first may be missing.
local function later(one, other)
  return one and one > other and one or other
end

local function clear_expiry(what)
  redis.call('ZREM', prefix .. 'ends', what)
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

local function enlist(what, key)
  local index, place = index_of(what, key)
  redis.call('ZADD', index, 0, place)
end

local function delist(what, key)
  local index, place = index_of(what, key)
  redis.call('ZREM', index, place)
end

-- Whether one of the parts of a key contains a text; '' is in all.
local function matches(text, ...)
  for _, part in ipairs({...}) do
    if string.find(unescape(part), text, 1, true) then return true end
  end
  return false
end

-- ARGV: kind and owner, first and last place, now, how many to look at, the text to find. Returns the last place ('' at
-- the end), and then for each of the things what `describe(key, now)` returns, with its place in front; things without
-- are left out.
function ops.listing()
  local group, now, most = ARGV[2], ARGV[5], tonumber(ARGV[6])
  local some = redis.call('ZRANGEBYLEX', prefix .. 'x' .. listed .. ':' .. group, ARGV[3], ARGV[4], 'LIMIT', 0, most)
  local reply = {#some < most and '' or some[#some]}
  for _, place in ipairs(some) do
    local channel, name, user = string.match(place, '^([^%z]*)%z([^%z]*)%z([^%z]*)$')
    local key = string.gsub(group .. '|' .. name .. '|' .. user .. '|' .. channel, '%%00', '\0')
    local found = matches(ARGV[7], channel, name, user) and describe(key, now)
    if found then
      table.insert(found, 1, place)
      reply[#reply + 1] = found
    end
  end
  return reply
end

-- The keys of a group, whatever the channel; `index` names the set of its channels.
local function keys_of_all_channels(index, group)
  local keys = redis.call('SMEMBERS', prefix .. index .. ':' .. group)
  for i, channel in ipairs(keys) do keys[i] = group .. '|' .. channel end
  return keys
end

local function store_document(key, value, ends)
  redis.call('HSET', prefix .. 'd:' .. key, 'e', ends, 'n', next_number(), 'v', value)
  set_expiry('d' .. key, ends)
  local group, user = split(key)
  if user ~= '' then redis.call('ZADD', prefix .. 'dh:' .. group, 0, unescape(user)) end
end

local function append_entry(key, at, ends, value)
  local number = next_number()
  local item = at .. number .. ends
  redis.call('ZADD', prefix .. 'l:' .. key, 0, item)
  redis.call('HSET', prefix .. 'lv:' .. key, number, value)
  redis.call('ZADD', prefix .. 'le:' .. key, ends, item)
  redis.call('ZADD', prefix .. 'ends', 'LT', ends, 'l' .. key)
  local group, channel = split(key)
  if redis.call('SADD', prefix .. 'lp:' .. group, channel) == 1 then enlist('l', key) end
end

local function remove_document(key)
  local group, user = split(key)
  redis.call('UNLINK', prefix .. 'd:' .. key)
  if user ~= '' then redis.call('ZREM', prefix .. 'dh:' .. group, unescape(user)) end
  clear_expiry('d' .. key)
end

local function remove_ballot(key, id)
  local group, channel = split(key)
  local of = prefix .. 'm:' .. id
  redis.call('UNLINK', prefix .. 'b:' .. key, of .. ':v', of .. ':a', of .. ':t', of .. ':c', of .. ':r', of .. ':k')
  redis.call('SREM', prefix .. 'bp:' .. group, channel)
  delist('b', key)
  clear_expiry('b' .. key)
end

-- The history of one pool, live or dropped.
local function remove_history(key, id)
  redis.call('HDEL', prefix .. 'pg:' .. key, id)
  redis.call('UNLINK', prefix .. 'po:' .. id)
  clear_expiry('g' .. id .. key)
end

local function remove_list(source)
  redis.call('UNLINK', prefix .. 's:' .. source, prefix .. 'sl:' .. source)
  clear_expiry('s' .. source)
end

local function remove_pool(key)
  local id, source = unpack(redis.call('HMGET', prefix .. 'p:' .. key, 'id', 'source'))
  remove_list(source)
  redis.call('UNLINK', prefix .. 'p:' .. key)
  clear_expiry('p' .. key)
  remove_history(key, id)
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

local function remove_roster(key)
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
