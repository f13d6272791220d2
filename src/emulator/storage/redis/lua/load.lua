-- Writes records. ARGV[2] is the generation to write to, or '' for the present one.
-- pd:<family>   set: digests in hex of items that the family has handed out, whose text is not known; see `resolve`
if ARGV[2] ~= '' then prefix = KEYS[1] .. ':' .. ARGV[2] .. ':' end
local LEASE = 3600 -- seconds after which a load that wrote nothing counts as abandoned by a crashed process

-- Whether `tidy` has left this generation alone so far.
local function is_loading()
  return tonumber(redis.call('ZSCORE', KEYS[1] .. ':dead', ARGV[2]) or 0) > 0
end

-- → a generation that no reset and no other load uses
function ops.begin()
  local generation = next_number()
  redis.call('ZADD', KEYS[1] .. ':dead', redis.call('TIME')[1] + LEASE, generation)
  return generation
end

-- → 1 if the loaded generation has become the present one, 0 if `tidy` has deleted it
function ops.show()
  if not is_loading() then return 0 end
  show_generation(ARGV[2])
  return 1
end

-- → nothing. `tidy` deletes what was loaded.
function ops.give_up()
  redis.call('ZADD', KEYS[1] .. ':dead', 'XX', 0, ARGV[2])
  return 1
end

local clear = {}

clear.d = remove_document

function clear.b(key)
  local id = redis.call('HGET', prefix .. 'b:' .. key, 'id')
  if id then remove_ballot(key, id) end
end

function clear.l(key)
  local group, channel = split(key)
  redis.call('UNLINK', prefix .. 'l:' .. key, prefix .. 'le:' .. key, prefix .. 'lv:' .. key)
  redis.call('SREM', prefix .. 'lp:' .. group, channel)
  delist('l', key)
  clear_expiry('l' .. key)
end

function clear.p(key)
  if redis.call('EXISTS', prefix .. 'p:' .. key) == 1 then remove_pool(key) end
  for _, id in ipairs(redis.call('HKEYS', prefix .. 'pg:' .. key)) do remove_history(key, id) end
end

function clear.s(key)
  local pool = redis.call('HGET', prefix .. 's:' .. key, 'pool')
  if pool then remove_pool(pool) else remove_list(key) end
end

clear.q = remove_roster

local ballots, rosters, pools = {}, {}, {} -- ids by key, for this call

local function id_of_ballot(key)
  ballots[key] = ballots[key] or redis.call('HGET', prefix .. 'b:' .. key, 'id')
  return ballots[key]
end

local function id_of_roster(key)
  rosters[key] = rosters[key] or find_roster(key)
  return rosters[key]
end

local function id_of_pool(key, number)
  if not pools[key] then
    pools[key] = redis.call('HKEYS', prefix .. 'pg:' .. key)
    table.sort(pools[key])
  end
  return pools[key][tonumber(number)]
end

-- By letter: how many arguments a record has, and what writes it.
local counts = {d = 3, b = 10, c = 2, e = 7, f = 1, i = 4, s = 2, t = 2, p = 4, h = 4, x = 2, q = 3, m = 2}
local write = {}

function write.d(key, ends, value)
  store_document(key, value, ends)
end

-- A definition has a letter in front; without one, there is none.
function write.b(key, ends, definition, opens, closes, disabled, known, voter, choice, choices)
  local group, channel = split(key)
  redis.call('HSET', prefix .. 'b:' .. key, 'id', next_number(), 'end', ends, 'opens', opens, 'closes', closes,
    'disabled', disabled, 'known', known, 'voter', voter, 'choice', choice, 'choices', choices)
  if definition ~= '' then redis.call('HSET', prefix .. 'b:' .. key, 'def', string.sub(definition, 2)) end
  redis.call('SADD', prefix .. 'bp:' .. group, channel)
  enlist('b', key)
  set_expiry('b' .. key, ends)
end

-- m:<id>:w   hash: choice → its number, of the choices whose entries are not written yet
function write.c(key, choice)
  redis.call('HSETNX', prefix .. 'm:' .. id_of_ballot(key) .. ':w', choice, next_number())
end

function write.e(key, voter, choice, times, at, note, whole)
  local of, number = prefix .. 'm:' .. id_of_ballot(key), next_number()
  local packed = redis.call('HGET', of .. ':v', voter)
  local rows = packed and cmsgpack.unpack(packed) or {}
  rows[#rows + 1] = {number, choice, tonumber(times), at, note, whole == '1' and 1 or nil}
  redis.call('HSET', of .. ':v', voter, cmsgpack.pack(rows))
  redis.call('ZADD', of .. ':a', 0, at .. number .. voter)
  local since = redis.call('HGET', of .. ':c', choice)
  if not since then
    since = redis.call('HGET', of .. ':w', choice) or number
    redis.call('HSET', of .. ':c', choice, since)
  end
  redis.call('ZINCRBY', of .. ':t', -tonumber(times), since .. choice)
end

-- All entries of the ballot are written.
function write.f(key)
  redis.call('UNLINK', prefix .. 'm:' .. id_of_ballot(key) .. ':w')
end

write.i = append_entry

function write.s(key, ends)
  redis.call('HSET', prefix .. 's:' .. key, 'end', ends)
  set_expiry('s' .. key, ends)
end

-- Items are separated by NUL.
function write.t(key, items)
  for item in string.gmatch(items .. '\0', '([^%z]*)%z') do redis.call('RPUSH', prefix .. 'sl:' .. key, item) end
end

-- Without a source, it is a dropped pool.
function write.p(key, ends, source, note)
  local id = next_number()
  redis.call('HSET', prefix .. 'pg:' .. key, id, ends)
  if source == '' then
    set_expiry('g' .. id .. key, ends)
    return
  end
  redis.call('HSET', prefix .. 'p:' .. key, 'id', id, 'end', ends, 'source', source, 'note', note,
    'version', next_number(), 'handed', 0)
  set_expiry('p' .. key, ends)
  redis.call('HSET', prefix .. 's:' .. source, 'end', ends, 'pool', key)
  clear_expiry('s' .. source)
end

function write.h(key, number, user, item)
  local id = id_of_pool(key, number)
  local of = prefix .. 'po:' .. id
  local nth = redis.call('HINCRBY', of, 'c' .. user, 1)
  redis.call('HSET', of, string.format('%.0f:', nth) .. user, item)
  if redis.call('HGET', prefix .. 'p:' .. key, 'id') == id then
    redis.call('HINCRBY', prefix .. 'p:' .. key, 'handed', 1)
  end
end

function write.x(family, digest)
  redis.call('SADD', prefix .. 'pd:' .. family, digest)
end

function write.q(key, ends, note)
  local id = next_number()
  store_roster(key, id, ends, id, note)
end

function write.m(key, member)
  local members = prefix .. 'qu:' .. split(key)
  redis.call('HSET', members, member, (redis.call('HGET', members, member) or '') .. id_of_roster(key) .. ',')
end

-- how many things to remove first, (letter, key)…, (letter, arguments…)… → 1, or 0 if `tidy` has deleted the generation
function ops.write()
  if ARGV[2] ~= '' then
    if not is_loading() then return 0 end
    redis.call('ZADD', KEYS[1] .. ':dead', redis.call('TIME')[1] + LEASE, ARGV[2])
  end
  local at = 4
  for _ = 1, tonumber(ARGV[3]) do
    clear[ARGV[at]](ARGV[at + 1])
    at = at + 2
  end
  while at <= #ARGV do
    local letter = ARGV[at]
    local last = at + counts[letter]
    write[letter](unpack(ARGV, at + 1, last))
    at = last + 1
  end
  return 1
end

-- family → whether it has digests of items
function ops.has_digests()
  return redis.call('EXISTS', prefix .. 'pd:' .. ARGV[3])
end

-- source, first, last → items
function ops.list()
  return redis.call('LRANGE', prefix .. 'sl:' .. ARGV[3], ARGV[4], ARGV[5])
end

-- family, (item, digest)… → nothing. From now on, those of these items whose digest is noted are known to be spent.
function ops.resolve()
  local digests, spent = prefix .. 'pd:' .. ARGV[3], prefix .. 'ps:' .. ARGV[3]
  for i = 4, #ARGV, 2 do
    if redis.call('SREM', digests, ARGV[i + 1]) == 1 then redis.call('SADD', spent, ARGV[i]) end
  end
  return 1
end

return ops[ARGV[1]]()
