-- What all scripts begin with. KEYS[1] is the namespace: it holds the number of its generation, and every other key of
-- it begins with the same text, so that all of a namespace lies on one slot of a cluster.
local space = KEYS[1] .. ':' .. (redis.call('GET', KEYS[1]) or '0') .. ':'
local ops = {}

-- Numbers rise over all processes and generations. As text of 16 digits they sort as they count; so do instants.
local function number()
  return string.format('%016.0f', redis.call('INCR', KEYS[1] .. ':numbers'))
end

local function due(what, at)
  redis.call('ZADD', space .. 'ends', at, what)
end

local function not_due(what)
  redis.call('ZREM', space .. 'ends', what)
end

-- An expiry whose thing is about to go in another way than by a purge, which still has to say so.
local function fell(what, at)
  redis.call('ZADD', space .. 'fallen', at, number() .. what)
end

-- All parts of a key but the last, and the last as it is in the key.
local function parts(key)
  return string.match(key, '^(.*)|([^|]*)$')
end

local function plain(part)
  return (string.gsub(part, '%%(%x%x)', function(code) return string.char(tonumber(code, 16)) end))
end

local function take_document(key)
  local group, holder = parts(key)
  redis.call('UNLINK', space .. 'd:' .. key)
  if holder ~= '' then redis.call('ZREM', space .. 'dh:' .. group, plain(holder)) end
  not_due('d' .. key)
end

local function take_ballot(key, id)
  local group, place = parts(key)
  local of = space .. 'm:' .. id
  redis.call('UNLINK', space .. 'b:' .. key, of .. ':v', of .. ':a', of .. ':t', of .. ':c', of .. ':r', of .. ':k')
  redis.call('SREM', space .. 'bp:' .. group, place)
  not_due('b' .. key)
end

-- What one pool, open or dropped, has handed out.
local function take_handed(key, id)
  redis.call('HDEL', space .. 'pg:' .. key, id)
  redis.call('UNLINK', space .. 'pi:' .. id, space .. 'po:' .. id)
  not_due('g' .. id .. key)
end

local function take_list(source)
  redis.call('UNLINK', space .. 's:' .. source, space .. 'sl:' .. source)
  not_due('s' .. source)
end

local function take_pool(key)
  local id, source = unpack(redis.call('HMGET', space .. 'p:' .. key, 'id', 'source'))
  take_list(source)
  redis.call('UNLINK', space .. 'p:' .. key)
  not_due('p' .. key)
  take_handed(key, id)
end

local function take_roster(key, id)
  local group, name = parts(key)
  redis.call('HDEL', space .. 'r:' .. group, name)
  redis.call('UNLINK', space .. 'rm:' .. id)
  not_due('r' .. key)
end
