-- b:<key>: what is known of a ballot as a whole; its `id` names what belongs to it until it ends:
-- m:<id>:v voter → what the voter holds · :a those by age · :c choice → since when it has been held · :t the choices in
-- a tally's order · :r who is reading · :k what was replaced while they read. bp:<key without place>: the places.
local HEAD = {'id', 'end', 'opens', 'closes', 'disabled', 'known', 'voter', 'choice', 'choices'}
-- A reading that is not gone on with for so long was left by a process that is no more.
local LEASE = 3600000
local ALL = 1e9

local function head_of(key)
  local h = redis.call('HMGET', space .. 'b:' .. key, unpack(HEAD))
  if not h[1] then return nil end
  return {
    id = h[1], of = space .. 'm:' .. h[1], ends = h[2], opens = tonumber(h[3]), closes = tonumber(h[4]),
    disabled = h[5] == '1', known = h[6] == '1', voter = tonumber(h[7]), choice = tonumber(h[8]),
    choices = tonumber(h[9])
  }
end

local function alive(key, now)
  local head = head_of(key)
  return head and now < tonumber(head.ends) and head or nil
end

-- A new ballot where none is alive; `dead` is the one that was there.
local function fresh(key, ends, dead)
  if dead then
    fell('b' .. key, dead.ends)
    take_ballot(key, dead.id)
  end
  local id = number()
  local group, place = parts(key)
  redis.call('HSET', space .. 'b:' .. key, 'id', id, 'end', ends, 'opens', '0', 'closes', '9007199254740991',
    'disabled', '0', 'known', '0', 'voter', '1', 'choice', '1', 'choices', '1')
  redis.call('SADD', space .. 'bp:' .. group, place)
  due('b' .. key, ends)
  return head_of(key)
end

-- What a voter holds, in the order of casting: {number, choice, times, cast at, note}.
local function held_by(head, voter)
  local packed = head and redis.call('HGET', head.of .. ':v', voter)
  return packed and cmsgpack.unpack(packed) or {}
end

-- Sorted by how many, then by how long it has been held without a gap.
local function shift(head, choice, by, number)
  local since = redis.call('HGET', head.of .. ':c', choice)
  if not since then
    since = number
    redis.call('HSET', head.of .. ':c', choice, since)
  end
  if tonumber(redis.call('ZINCRBY', head.of .. ':t', -by, since .. choice)) == 0 then
    redis.call('ZREM', head.of .. ':t', since .. choice)
    redis.call('HDEL', head.of .. ':c', choice)
  end
end

local function counted(head, top)
  if not head or top == 0 then return {} end
  return redis.call('ZRANGE', head.of .. ':t', 0, top - 1, 'WITHSCORES')
end

local function refusal(head, mark, held)
  if head then
    if head.disabled or mark.now < head.opens or mark.now >= head.closes then return 'closed' end
    if head.known and not mark.known then return 'unknown voter' end
    if head.voter == 1 then return nil end
  else
    return mark.now < 0 and 'closed' or nil
  end
  if mark.times < 1 then return 'times' end
  local all, same = mark.times, mark.times
  for _, row in ipairs(held) do
    all = all + row[3]
    if row[2] == mark.choice then same = same + row[3] end
  end
  local choices = #held + (same == mark.times and 1 or 0)
  if all > head.voter or same > head.choice or choices > head.choices then return 'over allowance' end
end

local function take(head, mark, held)
  local new, kept, replaced, times = number(), {}, {}, 1
  if head.voter == 1 then
    replaced = held
  else
    times = mark.times
    for _, row in ipairs(held) do
      if row[2] == mark.choice then
        replaced[#replaced + 1] = row
        times = times + row[3]
      else
        kept[#kept + 1] = row
      end
    end
  end
  if head.is_read == nil then head.is_read = redis.call('EXISTS', head.of .. ':r') == 1 end
  local more = times
  for _, row in ipairs(replaced) do
    redis.call('ZREM', head.of .. ':a', row[4] .. row[1] .. mark.voter)
    if head.is_read then
      local old = cmsgpack.pack({mark.voter, row[2], row[3], row[5]})
      redis.call('ZADD', head.of .. ':k', 0, row[4] .. row[1] .. new .. old)
    end
    if row[2] == mark.choice then
      more = more - row[3] -- one step, so that a choice that is held on has no gap
    else
      shift(head, row[2], -row[3], new)
    end
  end
  if more ~= 0 then shift(head, mark.choice, more, new) end
  kept[#kept + 1] = {new, mark.choice, times, mark.at, mark.note}
  redis.call('HSET', head.of .. ':v', mark.voter, cmsgpack.pack(kept))
  redis.call('ZADD', head.of .. ':a', 0, mark.at .. new .. mark.voter)
end

-- key, (voter, choice, note, known, times, now, end, tally)… → for each: refusal, previous, tally
function ops.cast()
  local key, answers, moved = ARGV[2], {}, false
  local head = head_of(key)
  for i = 3, #ARGV, 8 do
    local mark = {
      voter = ARGV[i], choice = ARGV[i + 1], note = ARGV[i + 2], known = ARGV[i + 3] == '1',
      times = tonumber(ARGV[i + 4]), at = ARGV[i + 5], now = tonumber(ARGV[i + 5]), ends = ARGV[i + 6]
    }
    local current = head and mark.now < tonumber(head.ends) and head or nil
    local held = held_by(current, mark.voter)
    local previous = #held > 0 and held[#held][2]
    local refused = refusal(current, mark, held)
    if not refused then
      current = current or fresh(key, mark.ends, head)
      head, moved = current, true
      take(head, mark, held)
      head.ends = mark.ends
    end
    answers[#answers + 1] = {refused or '', previous, ARGV[i + 7] == '1' and counted(current, ALL)}
  end
  if moved then
    redis.call('HSET', space .. 'b:' .. key, 'end', head.ends)
    due('b' .. key, head.ends)
  end
  return answers
end

-- key, definition, now, end, opens, closes, disabled, known, per voter, per choice, choices → nothing
function ops.define()
  local key, ends = ARGV[2], ARGV[5]
  local head = head_of(key)
  if not head or tonumber(ARGV[4]) >= tonumber(head.ends) then head = fresh(key, ends, head) end
  redis.call('HSET', space .. 'b:' .. key, 'def', ARGV[3], 'opens', ARGV[6], 'closes', ARGV[7], 'disabled', ARGV[8],
    'known', ARGV[9], 'voter', ARGV[10], 'choice', ARGV[11], 'choices', ARGV[12])
  if redis.call('EXISTS', head.of .. ':t') == 0 then
    redis.call('HSET', space .. 'b:' .. key, 'end', ends)
    due('b' .. key, ends)
  end
  return 1
end

-- key, now → the definition
function ops.definition()
  return alive(ARGV[2], tonumber(ARGV[3])) and redis.call('HGET', space .. 'b:' .. ARGV[2], 'def')
end

-- key, now, top, voter (or none) → the counts and the voter's choice
function ops.tally()
  local head = alive(ARGV[2], tonumber(ARGV[3]))
  local held = ARGV[5] and held_by(head, ARGV[5]) or {}
  return {counted(head, tonumber(ARGV[4])), #held > 0 and held[#held][2]}
end

local function keys_everywhere(group)
  local keys = redis.call('SMEMBERS', space .. 'bp:' .. group)
  for i, place in ipairs(keys) do keys[i] = group .. '|' .. place end
  return keys
end

-- key without place, now, voter (or none) → (choice, count, since)…, and the voter's choice
function ops.tally_of_all()
  local counts, sinces, latest, choice = {}, {}, '', false
  for _, key in ipairs(keys_everywhere(ARGV[2])) do
    local head = alive(key, tonumber(ARGV[3]))
    local some = counted(head, ALL)
    for i = 1, #some, 2 do
      local since, held = string.sub(some[i], 1, 16), string.sub(some[i], 17)
      counts[held] = (counts[held] or 0) - tonumber(some[i + 1])
      if not sinces[held] or since < sinces[held] then sinces[held] = since end
    end
    local mine = ARGV[4] and held_by(head, ARGV[4]) or {}
    local last = mine[#mine]
    if last and last[1] > latest then latest, choice = last[1], last[2] end
  end
  local flat = {}
  for held, count in pairs(counts) do
    flat[#flat + 1] = held
    flat[#flat + 1] = count
    flat[#flat + 1] = sinces[held]
  end
  return {flat, choice}
end

local function drop(key, now)
  local head = head_of(key)
  if not head then return end
  if now >= tonumber(head.ends) then fell('b' .. key, head.ends) end
  take_ballot(key, head.id)
end

-- now, key → nothing
function ops.drop()
  drop(ARGV[3], tonumber(ARGV[2]))
  return 1
end

-- now, key without place → nothing
function ops.drop_all()
  for _, key in ipairs(keys_everywhere(ARGV[3])) do drop(key, tonumber(ARGV[2])) end
  return 1
end

-- reading, now, whether all places, key (without place) → the number that what is to be read is below, then ids
function ops.begin()
  local keys = ARGV[4] == '1' and keys_everywhere(ARGV[5]) or {ARGV[5]}
  local begun = {number()}
  for _, key in ipairs(keys) do
    local head = alive(key, tonumber(ARGV[3]))
    if head then
      redis.call('HSET', head.of .. ':r', ARGV[2], begun[1])
      redis.call('PEXPIRE', head.of .. ':r', LEASE)
      begun[#begun + 1] = head.id
    end
  end
  return begun
end

-- Those of a set sorted by age that `shows` gives a row for, and how far this came if that is not the end.
local function rows_of(set, from, size, shows)
  local found = {}
  for _ = 1, 4 do
    local some = redis.call('ZRANGEBYLEX', set, from, '+', 'LIMIT', 0, size)
    for _, member in ipairs(some) do
      local position = string.sub(member, 1, 32)
      local row = shows(member, string.sub(member, 17, 32))
      if row then found[#found + 1] = {position, unpack(row)} end
    end
    if #some < size then return found, nil end
    local last = string.sub(some[#some], 1, 32)
    if #found >= size then return found, last end
    from = '(' .. last .. '\255'
  end
  return found, string.sub(from, 2, 33)
end

-- id, reading, from, below, size → how far this came ('' for the end), then rows: position, voter, choice, times, note
function ops.page()
  local of, bound, size = space .. 'm:' .. ARGV[2], ARGV[5], tonumber(ARGV[6])
  redis.call('PEXPIRE', of .. ':r', LEASE)
  local rows, reached = rows_of(of .. ':a', ARGV[4], size, function(member, mine)
    if mine >= bound then return nil end
    local voter = string.sub(member, 33)
    for _, row in ipairs(cmsgpack.unpack(redis.call('HGET', of .. ':v', voter))) do
      if row[1] == mine then return {voter, row[2], row[3], row[5]} end
    end
  end)
  -- What was replaced is there for those who began before that, and after it was cast.
  local old, reached_old = rows_of(of .. ':k', ARGV[4], size, function(member, mine)
    if mine >= bound or string.sub(member, 33, 48) < bound then return nil end
    return cmsgpack.unpack(string.sub(member, 49))
  end)
  if reached_old and (not reached or reached_old < reached) then reached = reached_old end
  if #old > 0 then
    for _, row in ipairs(old) do rows[#rows + 1] = row end
    table.sort(rows, function(one, other) return one[1] < other[1] end)
  end
  local page = {}
  for _, row in ipairs(rows) do
    if reached and row[1] > reached then break end
    if #page == size then
      reached = page[size][1]
      break
    end
    page[#page + 1] = row
  end
  return {reached or '', page}
end

-- reading, ids… → nothing
function ops.finish()
  for i = 3, #ARGV do
    local of = space .. 'm:' .. ARGV[i]
    redis.call('HDEL', of .. ':r', ARGV[2])
    if redis.call('EXISTS', of .. ':r') == 0 then redis.call('UNLINK', of .. ':k') end
  end
  return 1
end

return ops[ARGV[1]]()
