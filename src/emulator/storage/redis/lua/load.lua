-- Writes records, in the order of a dump.
local LEASE = 3600 -- seconds after which a load counts as abandoned by a crashed process

-- → a generation that no reset and no other load uses
function ops.begin()
  local generation = next_number()
  redis.call('ZADD', KEYS[1] .. ':dead', redis.call('TIME')[1] + LEASE, generation)
  return generation
end

-- → 1 if the loaded generation has become the present one, 0 if `tidy` has deleted it
function ops.show(generation)
  if tonumber(redis.call('ZSCORE', KEYS[1] .. ':dead', generation) or 0) == 0 then return 0 end
  show_generation(generation)
  return 1
end

-- `tidy` deletes what was loaded.
function ops.give_up(generation)
  redis.call('ZADD', KEYS[1] .. ':dead', 0, generation)
end

-- By letter, which for things is that of `remove`: writes a record.
local write = {}

function write.d(key, ends, value)
  store_document(key, value, ends)
end

function write.b(key, ends, definition, terms)
  redis.call('HSET', prefix .. 'b:' .. key, 'id', next_number(), 'end', ends, 'terms', terms)
  if definition then redis.call('HSET', prefix .. 'b:' .. key, 'def', definition) end
  enlist('b', key)
  set_expiry('b' .. key, ends)
end

local function casts_of(key)
  return prefix .. 'm:' .. redis.call('HGET', prefix .. 'b:' .. key, 'id')
end

-- A choice.
function write.c(key, choice)
  redis.call('HSETNX', casts_of(key) .. ':c', choice, next_number())
end

-- A cast.
function write.e(key, entry)
  local of, number = casts_of(key), next_number()
  local voter, choice, times, at, note = unpack(entry)
  local packed = redis.call('HGET', of .. ':v', voter)
  local rows = packed and cmsgpack.unpack(packed) or {}
  rows[#rows + 1] = {number, choice, times, at, note}
  redis.call('HSET', of .. ':v', voter, cmsgpack.pack(rows))
  redis.call('ZADD', of .. ':a', 0, digits(at) .. number .. voter)
  redis.call('HSETNX', of .. ':c', choice, number)
  redis.call('ZINCRBY', of .. ':t', -times, redis.call('HGET', of .. ':c', choice) .. choice)
end

write.l = append_entry

function write.s(key, ends)
  redis.call('HSET', prefix .. 's:' .. key, 'end', ends)
  set_expiry('s' .. key, ends)
end

-- Items of a list.
function write.t(key, items)
  call_with('RPUSH', prefix .. 'sl:' .. key, items)
end

-- Without a source, it is a dropped pool.
function write.p(key, _, ends, source, note)
  local id = next_number()
  redis.call('HSET', prefix .. 'pg:' .. key, id, ends)
  if not source then return set_expiry('g' .. id .. key, ends) end
  redis.call('HSET', prefix .. 'p:' .. key, 'id', id, 'end', ends, 'source', source, 'note', note,
    'version', next_number(), 'handed', 0)
  set_expiry('p' .. key, ends)
  redis.call('HSET', prefix .. 's:' .. source, 'end', ends, 'pool', key)
  clear_expiry('s' .. source)
end

-- An item that was handed out.
function write.h(key, number, user, item)
  local id = pools_with_history(key, -math.huge)[number]
  hand_out(id, user, item)
  if redis.call('HGET', prefix .. 'p:' .. key, 'id') == id then
    redis.call('HINCRBY', prefix .. 'p:' .. key, 'handed', 1)
  end
end

write.x = spend

function write.q(key, ends, note)
  local id = next_number()
  store_roster(key, id, ends, id, note)
end

-- A member.
function write.m(key, member)
  local members = prefix .. 'qu:' .. split(key)
  redis.call('HSET', members, member, (redis.call('HGET', members, member) or '') .. find_roster(key) .. ',')
end

-- Write {letter, key, …}… Without a generation, write to the present one, and first remove what is there.
function ops.write(generation, records)
  prefix = KEYS[1] .. ':' .. (generation or redis.call('GET', KEYS[1]) or '0') .. ':'
  local removed = {}
  for _, record in ipairs(records) do
    local letter, key = record[1], record[2]
    if not generation and remove[letter] and not removed[letter .. key] then
      remove[letter](key)
      if letter == 'p' then
        for _, id in ipairs(redis.call('HKEYS', prefix .. 'pg:' .. key)) do remove.g(id .. key) end
      end
      removed[letter .. key] = true
    end
    write[letter](unpack(record, 2, 6))
  end
end
