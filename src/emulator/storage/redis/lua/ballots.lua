-- b:<key>        hash: id, expiry, terms and definition of a ballot; the keys below contain the id
-- m:<id>:v       hash: voter → the voter's casts
-- m:<id>:a       sorted set: the same by age
-- m:<id>:c       hash: choice → the number of the cast since when it has had casts
-- m:<id>:t       sorted set: choices in a tally's order
-- m:<id>:r       there while entries are read
-- m:<id>:k       sorted set: entries that were replaced meanwhile
-- bp:<key without channel>  set: the channels
local FIELDS = {'id', 'end', 'opens', 'closes', 'disabled', 'known', 'voter', 'choice', 'choices'}
local ALL = 1e9
-- Milliseconds after the latest page of entries in which replaced entries are kept.
local READING = 60000

local function find(key)
  local values = redis.call('HMGET', prefix .. 'b:' .. key, unpack(FIELDS))
  if not values[1] then return nil end
  return {
    name = prefix .. 'b:' .. key, id = values[1], of = prefix .. 'm:' .. values[1], ends = values[2], opens = tonumber(values[3]),
    closes = tonumber(values[4]), disabled = values[5] == '1', known = values[6] == '1', per_voter = tonumber(values[7]),
    per_choice = tonumber(values[8]), choices = tonumber(values[9])
  }
end

local function alive(key, now)
  local ballot = find(key)
  return ballot and now < tonumber(ballot.ends) and ballot or nil
end

-- Create a ballot where none is alive; `expired` is the previous one, if it was not purged yet.
local function create(key, ends, expired)
  if expired then remove_ballot(key, expired.id) end
  local group, channel = split(key)
  redis.call('HSET', prefix .. 'b:' .. key, 'id', next_number(), 'end', ends, 'opens', '0',
    'closes', '9007199254740991', 'disabled', '0', 'known', '0', 'voter', '1', 'choice', '1', 'choices', '1')
  redis.call('SADD', prefix .. 'bp:' .. group, channel)
  enlist('b', key)
  set_expiry('b' .. key, ends)
  return find(key)
end

-- A voter's casts in the order of casting, one row for each choice: {number, choice, times, cast at, note, 1 if whole}.
local function rows_of(ballot, voter)
  local packed = ballot and redis.call('HGET', ballot.of .. ':v', voter)
  return packed and cmsgpack.unpack(packed) or {}
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

-- Read what casts may change, once for all of them: voter → rows, choice → count and the number since when it has casts.
-- `old` is the state in Redis of the choices that have casts.
local function load(ballot, voters, wanted)
  ballot.rows, ballot.counts, ballot.sinces, ballot.old = {}, {}, {}, {}
  ballot.voters, ballot.added, ballot.removed, ballot.changed = {}, {}, {}, {}
  if ballot.is_new then return end
  local packed = redis.call('HMGET', ballot.of .. ':v', unpack(voters))
  for i, voter in ipairs(voters) do
    if packed[i] and not ballot.rows[voter] then
      ballot.rows[voter] = cmsgpack.unpack(packed[i])
      for _, row in ipairs(ballot.rows[voter]) do wanted[row[2]] = true end
    end
  end
  local choices = {}
  for choice in pairs(wanted) do choices[#choices + 1] = choice end
  for from = 1, #choices, 1000 do
    local to = math.min(from + 999, #choices)
    local names, members = {}, {}
    for i, since in ipairs(redis.call('HMGET', ballot.of .. ':c', unpack(choices, from, to))) do
      local choice = choices[from + i - 1]
      if since then
        ballot.sinces[choice], ballot.old[choice] = since, since
        names[#names + 1], members[#members + 1] = choice, since .. choice
      end
    end
    if #members > 0 then
      for i, score in ipairs(redis.call('ZMSCORE', ballot.of .. ':t', unpack(members))) do
        ballot.counts[names[i]] = -tonumber(score)
      end
    end
  end
end

-- Add to the count of a choice, and append choice, new count, since to the reply.
local function add_count(ballot, choice, by, number, reply)
  local count = (ballot.counts[choice] or 0) + by
  local since = ballot.sinces[choice] or number
  ballot.counts[choice], ballot.sinces[choice] = count, count ~= 0 and since or nil
  ballot.changed[choice] = true
  reply[#reply + 1] = choice
  reply[#reply + 1] = count
  reply[#reply + 1] = since
end

local function record(ballot, request, rows, new, reply)
  local kept, replaced, times = {}, {}, 1
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
    local place = row[4] .. row[1] .. request.voter
    if ballot.added[place] then ballot.added[place] = nil else ballot.removed[#ballot.removed + 1] = place end
    if ballot.is_read then
      local old = cmsgpack.pack({request.voter, row[2], row[3], row[5]})
      redis.call('ZADD', ballot.of .. ':k', 0, row[4] .. row[1] .. new .. old)
      redis.call('PEXPIRE', ballot.of .. ':k', READING)
    end
    if row[2] == request.choice then
      more = more - row[3] -- one step, so that the count never drops to 0 in between
    else
      add_count(ballot, row[2], -row[3], new, reply)
    end
  end
  if more ~= 0 then add_count(ballot, request.choice, more, new, reply) end
  kept[#kept + 1] = {new, request.choice, times, request.at, request.note, request.is_whole and times == 1 and 1 or nil}
  ballot.rows[request.voter] = kept
  ballot.voters[request.voter] = true
  ballot.added[request.at .. new .. request.voter] = true
end

-- Write what the casts have changed.
local function store(ballot)
  local rows, places = {}, {}
  for voter in pairs(ballot.voters) do
    rows[#rows + 1] = voter
    rows[#rows + 1] = cmsgpack.pack(ballot.rows[voter])
  end
  for place in pairs(ballot.added) do
    places[#places + 1] = '0'
    places[#places + 1] = place
  end
  call_with('HSET', ballot.of .. ':v', rows)
  call_with('ZREM', ballot.of .. ':a', ballot.removed)
  call_with('ZADD', ballot.of .. ':a', places)
  local scores, sinces, gone, without = {}, {}, {}, {}
  for choice in pairs(ballot.changed) do
    local since, old = ballot.sinces[choice], ballot.old[choice]
    if old and old ~= since then gone[#gone + 1] = old .. choice end
    if since then
      scores[#scores + 1] = string.format('%.0f', -ballot.counts[choice])
      scores[#scores + 1] = since .. choice
      if old ~= since then
        sinces[#sinces + 1] = choice
        sinces[#sinces + 1] = since
      end
    elseif old then
      without[#without + 1] = choice
    end
  end
  call_with('ZREM', ballot.of .. ':t', gone)
  call_with('HDEL', ballot.of .. ':c', without)
  call_with('ZADD', ballot.of .. ':t', scores)
  call_with('HSET', ballot.of .. ':c', sinces)
end

-- key, (voter, choice, note, 1 if known plus 2 if whole, times, now, expiry, '1' if a tally is wanted)… → for each of
-- them: refusal, previous choice, 'none' if there is no ballot, 'same' if there was one or 'fresh' if it was created, and
-- choice, new count, since… of the counts that it changed, all packed; then the counts before them if a tally is wanted
function ops.cast()
  local key, requests, reserved, is_wanted = ARGV[2], {}, nil, false
  local ballot, replies, voters, wanted = find(key), {}, {}, {}
  for at = 3, #ARGV, 8 do
    local voter, choice, note, flags, times, now, ends, tally = unpack(ARGV, at, at + 7)
    local i = #requests + 1
    voters[i], wanted[choice], is_wanted = voter, true, is_wanted or tally == '1'
    requests[i] = {
      voter = voter, choice = choice, note = note, known = flags == '1' or flags == '3',
      is_whole = flags == '2' or flags == '3', times = tonumber(times), at = now, now = tonumber(now), ends = ends
    }
  end
  local before = is_wanted and counts_of(ballot, ALL) or {}
  if ballot then load(ballot, voters, wanted) end
  for i, request in ipairs(requests) do
    local live = ballot and request.now < tonumber(ballot.ends) and ballot or nil
    local rows = live and live.rows[request.voter] or {}
    local refused = refusal(live, request, rows)
    local reply = {refused or '', #rows > 0 and rows[#rows][2], live and 'same' or 'none'}
    if not refused then
      if not live then
        reply[3], ballot = 'fresh', create(key, request.ends, ballot)
        ballot.is_new = true
        load(ballot)
      end
      reserved = (reserved or redis.call('INCRBY', KEYS[1] .. ':numbers', #requests) - #requests) + 1
      record(ballot, request, rows, string.format('%016.0f', reserved), reply)
      ballot.ends = later(ballot.ends, request.ends)
    end
    replies[i] = reply
  end
  if reserved then
    store(ballot)
    redis.call('HSET', ballot.name, 'end', ballot.ends)
    set_expiry('b' .. key, ballot.ends)
  end
  return {cmsgpack.pack(replies), before}
end

-- key, definition, now, expiry, opens, closes, disabled, known, per voter, per choice, choices → nothing
function ops.define()
  local key, ends = ARGV[2], ARGV[5]
  local ballot = find(key)
  if ARGV[13] then
    local found = alive(key, tonumber(ARGV[4])) and redis.call('HGET', prefix .. 'b:' .. key, 'def')
    if (found or nil) ~= ARGV[14] then return 0 end
  end
  if not ballot or tonumber(ARGV[4]) >= tonumber(ballot.ends) then ballot = create(key, ends, ballot) end
  redis.call('HSET', prefix .. 'b:' .. key, 'def', ARGV[3], 'opens', ARGV[6], 'closes', ARGV[7], 'disabled', ARGV[8],
    'known', ARGV[9], 'voter', ARGV[10], 'choice', ARGV[11], 'choices', ARGV[12])
  if redis.call('EXISTS', ballot.of .. ':t') == 0 then
    ends = later(ballot.ends, ends)
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
  for _, key in ipairs(keys_of_all_channels('bp', ARGV[2])) do
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

local function drop(key)
  local ballot = find(key)
  if ballot then remove_ballot(key, ballot.id) end
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
  drop(ARGV[3])
  return 1
end

-- now, key without channel → the keys
function ops.drop_all_channels()
  local keys = keys_of_all_channels('bp', ARGV[3])
  for _, key in ipairs(keys) do drop(key) end
  return keys
end

-- now, whether all channels, key (without channel) → a bound for the numbers to read, then the ballots' ids
function ops.begin()
  local keys = ARGV[3] == '1' and keys_of_all_channels('bp', ARGV[4]) or {ARGV[4]}
  local reply = {next_number()}
  for _, key in ipairs(keys) do
    local ballot = alive(key, tonumber(ARGV[2]))
    if ballot then
      redis.call('SET', ballot.of .. ':r', '', 'PX', READING)
      reply[#reply + 1] = ballot.id
    end
  end
  return reply
end

-- id, from, size → entries by age, flat: position and voter, choice, times, note, whether it is whole; then those that
-- were replaced, the same with position, number of the replacement and voter; at most `size` of each
function ops.page()
  local of, from, size = prefix .. 'm:' .. ARGV[2], ARGV[3], tonumber(ARGV[4])
  redis.call('PEXPIRE', of .. ':r', READING)
  redis.call('PEXPIRE', of .. ':k', READING)
  local members = redis.call('ZRANGEBYLEX', of .. ':a', from, '+', 'LIMIT', 0, size)
  local replaced = redis.call('ZRANGEBYLEX', of .. ':k', from, '+', 'LIMIT', 0, size)
  local found, voters = {}, {}
  for i, member in ipairs(members) do voters[i] = string.sub(member, 33) end
  for i, packed in ipairs(#voters > 0 and redis.call('HMGET', of .. ':v', unpack(voters)) or {}) do
    for _, row in ipairs(cmsgpack.unpack(packed)) do
      if row[1] == string.sub(members[i], 17, 32) then
        local n = #found
        found[n + 1], found[n + 2], found[n + 3], found[n + 4], found[n + 5] =
          members[i], row[2], row[3], row[5], row[6] or 0
      end
    end
  end
  local old = {}
  for _, member in ipairs(replaced) do
    local voter, choice, times, note = unpack(cmsgpack.unpack(string.sub(member, 49)))
    for _, part in ipairs({string.sub(member, 1, 48) .. voter, choice, times, note, 0}) do old[#old + 1] = part end
  end
  return {found, old}
end

return ops[ARGV[1]]()
