local ALL = 1e9

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

-- Sorted by how many, then by how long it has been held without a gap; notes how many it is now, and since when.
local function shift(head, choice, by, number, changes)
  local since = redis.call('HGET', head.of .. ':c', choice)
  if not since then
    since = number
    redis.call('HSET', head.of .. ':c', choice, since)
  end
  local count = -tonumber(redis.call('ZINCRBY', head.of .. ':t', -by, since .. choice))
  changes[#changes + 1] = {choice, count, since}
  if count == 0 then
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

-- → what the counts changed to
local function take(head, mark, held)
  local new, kept, replaced, times, changes = number(), {}, {}, 1, {}
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
      shift(head, row[2], -row[3], new, changes)
    end
  end
  if more ~= 0 then shift(head, mark.choice, more, new, changes) end
  kept[#kept + 1] = {new, mark.choice, times, mark.at, mark.note}
  redis.call('HSET', head.of .. ':v', mark.voter, cmsgpack.pack(kept))
  redis.call('ZADD', head.of .. ':a', 0, mark.at .. new .. mark.voter)
  return changes
end

-- key, whether a tally is asked for, (voter, choice, note, known, times, now, end)… → the counts before, then for each
-- mark: refusal, previous, whether it met 'none', the 'same' ballot as the mark before, or began a 'fresh' one, and what
-- the counts changed to. So a ballot of many choices is not sent once for each mark.
function ops.cast()
  local key, moved = ARGV[2], false
  local head = head_of(key)
  local answers = {ARGV[3] == '1' and counted(head, ALL) or {}}
  for i = 4, #ARGV, 7 do
    local mark = {
      voter = ARGV[i], choice = ARGV[i + 1], note = ARGV[i + 2], known = ARGV[i + 3] == '1',
      times = tonumber(ARGV[i + 4]), at = ARGV[i + 5], now = tonumber(ARGV[i + 5]), ends = ARGV[i + 6]
    }
    local current = head and mark.now < tonumber(head.ends) and head or nil
    local met, changes = current and 'same' or 'none', {}
    local held = held_by(current, mark.voter)
    local previous = #held > 0 and held[#held][2]
    local refused = refusal(current, mark, held)
    if not refused then
      if not current then
        met, head = 'fresh', fresh(key, mark.ends, head)
      end
      moved = true
      changes = take(head, mark, held)
      head.ends = mark.ends
    end
    answers[#answers + 1] = {refused or '', previous, met, changes}
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

return ops[ARGV[1]]()
