local ALL = 1e9

-- Create a ballot where none is alive; `expired` is the previous one, if it was not purged yet.
local function create(key, ends, expired)
  if expired then
    note_expired('b' .. key, expired.ends)
    remove_ballot(key, expired.id)
  end
  local group, channel = split(key)
  redis.call('HSET', prefix .. 'b:' .. key, 'id', next_number(), 'end', ends, 'opens', '0',
    'closes', '9007199254740991', 'disabled', '0', 'known', '0', 'voter', '1', 'choice', '1', 'choices', '1')
  redis.call('SADD', prefix .. 'bp:' .. group, channel)
  enlist('b', key)
  set_expiry('b' .. key, ends)
  return find(key)
end

-- A voter's casts in the order of casting, one row for each choice: {number, choice, times, cast at, note}.
local function rows_of(ballot, voter)
  local packed = ballot and redis.call('HGET', ballot.of .. ':v', voter)
  return packed and cmsgpack.unpack(packed) or {}
end

-- Add to the count of a choice, and append {choice, new count, since} to `changes`.
local function add_count(ballot, choice, by, number, changes)
  local since = redis.call('HGET', ballot.of .. ':c', choice)
  if not since then
    since = number
    redis.call('HSET', ballot.of .. ':c', choice, since)
  end
  local count = -tonumber(redis.call('ZINCRBY', ballot.of .. ':t', -by, since .. choice))
  changes[#changes + 1] = {choice, count, since}
  if count == 0 then
    redis.call('ZREM', ballot.of .. ':t', since .. choice)
    redis.call('HDEL', ballot.of .. ':c', choice)
  end
end

-- → (since .. choice, minus the count)…, in a tally's order
local function counts_of(ballot, top)
  if not ballot or top == 0 then return {} end
  return redis.call('ZRANGE', ballot.of .. ':t', 0, top - 1, 'WITHSCORES')
end

local function refusal(ballot, request, rows)
  if ballot then
    if ballot.disabled or request.now < ballot.opens or request.now >= ballot.closes then return 'closed' end
    if ballot.known and not request.known then return 'unknown voter' end
    if ballot.per_voter == 1 then return nil end
  else
    return request.now < 0 and 'closed' or nil
  end
  if request.times < 1 then return 'times' end
  local all, same = request.times, request.times
  for _, row in ipairs(rows) do
    all = all + row[3]
    if row[2] == request.choice then same = same + row[3] end
  end
  local choices = #rows + (same == request.times and 1 or 0)
  if all > ballot.per_voter or same > ballot.per_choice or choices > ballot.choices then return 'over allowance' end
end

-- → the changes of the counts
local function record(ballot, request, rows)
  local new, kept, replaced, times, changes = next_number(), {}, {}, 1, {}
  if ballot.per_voter == 1 then
    replaced = rows
  else
    times = request.times
    for _, row in ipairs(rows) do
      if row[2] == request.choice then
        replaced[#replaced + 1] = row
        times = times + row[3]
      else
        kept[#kept + 1] = row
      end
    end
  end
  if ballot.is_read == nil then ballot.is_read = redis.call('EXISTS', ballot.of .. ':r') == 1 end
  local more = times
  for _, row in ipairs(replaced) do
    redis.call('ZREM', ballot.of .. ':a', row[4] .. row[1] .. request.voter)
    if ballot.is_read then
      local old = cmsgpack.pack({request.voter, row[2], row[3], row[5]})
      redis.call('ZADD', ballot.of .. ':k', 0, row[4] .. row[1] .. new .. old)
    end
    if row[2] == request.choice then
      more = more - row[3] -- one step, so that the count never drops to 0 in between
    else
      add_count(ballot, row[2], -row[3], new, changes)
    end
  end
  if more ~= 0 then add_count(ballot, request.choice, more, new, changes) end
  kept[#kept + 1] = {new, request.choice, times, request.at, request.note}
  redis.call('HSET', ballot.of .. ':v', request.voter, cmsgpack.pack(kept))
  redis.call('ZADD', ballot.of .. ':a', 0, request.at .. new .. request.voter)
  return changes
end

-- key, whether any tally is wanted, (voter, choice, note, known, times, now, expiry)… → the counts before, then for each
-- cast: refusal, previous choice, 'none' if there is no ballot, 'same' if there was one or 'fresh' if it was created,
-- and the changes of the counts. So the counts are sent once, however many casts there are.
function ops.cast()
  local key, is_changed = ARGV[2], false
  local ballot = find(key)
  local replies = {ARGV[3] == '1' and counts_of(ballot, ALL) or {}}
  for i = 4, #ARGV, 7 do
    local request = {
      voter = ARGV[i], choice = ARGV[i + 1], note = ARGV[i + 2], known = ARGV[i + 3] == '1',
      times = tonumber(ARGV[i + 4]), at = ARGV[i + 5], now = tonumber(ARGV[i + 5]), ends = ARGV[i + 6]
    }
    local live = ballot and request.now < tonumber(ballot.ends) and ballot or nil
    local state, changes = live and 'same' or 'none', {}
    local rows = rows_of(live, request.voter)
    local previous = #rows > 0 and rows[#rows][2]
    local refused = refusal(live, request, rows)
    if not refused then
      if not live then
        state, ballot = 'fresh', create(key, request.ends, ballot)
      end
      is_changed = true
      changes = record(ballot, request, rows)
      ballot.ends = request.ends
    end
    replies[#replies + 1] = {refused or '', previous, state, changes}
  end
  if is_changed then
    redis.call('HSET', prefix .. 'b:' .. key, 'end', ballot.ends)
    set_expiry('b' .. key, ballot.ends)
  end
  return replies
end

-- key, definition, now, expiry, opens, closes, disabled, known, per voter, per choice, choices → nothing
function ops.define()
  local key, ends = ARGV[2], ARGV[5]
  local ballot = find(key)
  if not ballot or tonumber(ARGV[4]) >= tonumber(ballot.ends) then ballot = create(key, ends, ballot) end
  redis.call('HSET', prefix .. 'b:' .. key, 'def', ARGV[3], 'opens', ARGV[6], 'closes', ARGV[7], 'disabled', ARGV[8],
    'known', ARGV[9], 'voter', ARGV[10], 'choice', ARGV[11], 'choices', ARGV[12])
  if redis.call('EXISTS', ballot.of .. ':t') == 0 then
    redis.call('HSET', prefix .. 'b:' .. key, 'end', ends)
    set_expiry('b' .. key, ends)
  end
  return 1
end

-- key, now → the definition
function ops.definition()
  return alive(ARGV[2], tonumber(ARGV[3])) and redis.call('HGET', prefix .. 'b:' .. ARGV[2], 'def')
end

-- key, now, top, voter (optional) → the counts and the voter's choice
function ops.tally()
  local ballot = alive(ARGV[2], tonumber(ARGV[3]))
  local rows = ARGV[5] and rows_of(ballot, ARGV[5]) or {}
  return {counts_of(ballot, tonumber(ARGV[4])), #rows > 0 and rows[#rows][2]}
end

-- key without channel, now, voter (optional) → (choice, count, since)… unsorted, and the voter's choice
function ops.tally_all_channels()
  local counts, sinces, latest, latest_choice = {}, {}, '', false
  for _, key in ipairs(keys_of_all_channels(ARGV[2])) do
    local ballot = alive(key, tonumber(ARGV[3]))
    local some = counts_of(ballot, ALL)
    for i = 1, #some, 2 do
      local since, choice = string.sub(some[i], 1, 16), string.sub(some[i], 17)
      counts[choice] = (counts[choice] or 0) - tonumber(some[i + 1])
      if not sinces[choice] or since < sinces[choice] then sinces[choice] = since end
    end
    local rows = ARGV[4] and rows_of(ballot, ARGV[4]) or {}
    local last = rows[#rows]
    if last and last[1] > latest then latest, latest_choice = last[1], last[2] end
  end
  local flat = {}
  for choice, count in pairs(counts) do
    flat[#flat + 1] = choice
    flat[#flat + 1] = count
    flat[#flat + 1] = sinces[choice]
  end
  return {flat, latest_choice}
end

local function drop(key, now)
  local ballot = find(key)
  if not ballot then return end
  if now >= tonumber(ballot.ends) then note_expired('b' .. key, ballot.ends) end
  remove_ballot(key, ballot.id)
end

-- The casts of all voters. Where a voter has one cast, the voters are counted: there may be a million choices.
local function total(ballot)
  if ballot.per_voter == 1 and redis.call('ZCARD', ballot.of .. ':t') > 1000 then
    return redis.call('HLEN', ballot.of .. ':v')
  end
  local counts, sum = counts_of(ballot, ALL), 0
  for i = 2, #counts, 2 do sum = sum - tonumber(counts[i]) end
  return sum
end

listed = 'b'
-- → the count, the expiry, the definition
function describe(key, now)
  local ballot = alive(key, tonumber(now))
  return ballot and {total(ballot), ballot.ends, redis.call('HGET', prefix .. 'b:' .. key, 'def')}
end

-- now, key → nothing
function ops.drop()
  drop(ARGV[3], tonumber(ARGV[2]))
  return 1
end

-- now, key without channel → the keys
function ops.drop_all_channels()
  local keys = keys_of_all_channels(ARGV[3])
  for _, key in ipairs(keys) do drop(key, tonumber(ARGV[2])) end
  return keys
end

return ops[ARGV[1]]()
