-- b:<key>   hash: id, expiry, definition, and packed terms of a ballot; the keys below contain the id
-- m:<id>:v  hash: voter → the voter's casts
-- m:<id>:a  sorted set: time and number of each cast, 16 digits each, with its voter
-- m:<id>:r  there while entries are read
-- m:<id>:k  sorted set: the places of casts that were replaced meanwhile, each with the new number, the voter and the row
-- m:<id>:c  hash: choice → the number of the cast since when it has had casts
-- m:<id>:t  sorted set: choices in a tally's order
local READING = 60000 -- milliseconds after the latest page of entries in which replaced casts are kept
local NEVER = 9007199254740991
local TERMS = {0, NEVER, false, false, 1, 1, 1} -- of a ballot without a definition

local function find(key)
  local id, ends, packed = unpack(redis.call('HMGET', prefix .. 'b:' .. key, 'id', 'end', 'terms'))
  if not id then return nil end
  local opens, closes, disabled, known, per_voter, per_choice, choices = unpack(packed and cmsgpack.unpack(packed) or TERMS)
  return {
    name = prefix .. 'b:' .. key, id = id, of = prefix .. 'm:' .. id, ends = tonumber(ends), opens = opens, closes = closes,
    disabled = disabled, known = known, per_voter = per_voter, per_choice = per_choice, choices = choices
  }
end

local function alive(key, now)
  local ballot = find(key)
  return ballot and now < ballot.ends and ballot or nil
end

-- Create a ballot without casts.
local function create(key, ends)
  remove.b(key) -- an expired one, if it was not purged yet, or one to clear
  redis.call('HSET', prefix .. 'b:' .. key, 'id', next_number(), 'end', ends)
  enlist('b', key)
  set_expiry('b' .. key, ends)
  return find(key)
end

-- A voter's casts in the order of casting, one row for each choice: {number, choice, times, cast at, note}.
local function rows_of(ballot, voter)
  local packed = ballot and redis.call('HGET', ballot.of .. ':v', voter)
  return packed and cmsgpack.unpack(packed) or {}
end

-- → (since .. choice, minus the count)…, in a tally's order; without `top`, of all choices
local function counts_of(ballot, top)
  if not ballot or top == 0 then return {} end
  return redis.call('ZRANGE', ballot.of .. ':t', 0, (top or 0) - 1, 'WITHSCORES')
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
  ballot.is_read = redis.call('EXISTS', ballot.of .. ':r') == 1
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
        ballot.counts[names[i]] = -tonumber(score or 0)
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
  local more = times
  for _, row in ipairs(replaced) do
    local place = digits(row[4]) .. row[1] .. request.voter
    if ballot.added[place] then ballot.added[place] = nil else ballot.removed[#ballot.removed + 1] = place end
    if ballot.is_read then
      redis.call('ZADD', ballot.of .. ':k', 0, string.sub(place, 1, 32) .. new .. cmsgpack.pack({request.voter, row}))
      redis.call('PEXPIRE', ballot.of .. ':k', READING)
    end
    if row[2] == request.choice then
      more = more - row[3] -- one step, so that the count never drops to 0 in between
    else
      add_count(ballot, row[2], -row[3], new, reply)
    end
  end
  if more ~= 0 then add_count(ballot, request.choice, more, new, reply) end
  kept[#kept + 1] = {new, request.choice, times, request.now, request.note}
  ballot.rows[request.voter] = kept
  ballot.voters[request.voter] = true
  ballot.added[digits(request.now) .. new .. request.voter] = true
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

-- For each request, {voter, choice, note, whether known, times, now, expiry, whether a tally is wanted}:
-- → refusal, previous choice, 'none' if there is no ballot, 'same' if there was one or 'fresh' if it was created, and
-- choice, new count, since… of the counts that it changed, all packed; then the counts before them if a tally is wanted
function ops.cast(key, ...)
  local requests, reserved, is_wanted = {}, nil, false
  local ballot, replies, voters, wanted = find(key), {}, {}, {}
  for i, request in ipairs({...}) do
    local voter, choice, note, known, times, now, ends, tally = unpack(request)
    voters[i], wanted[choice], is_wanted = voter, true, is_wanted or tally
    requests[i] = {voter = voter, choice = choice, note = note, known = known, times = times, now = now, ends = ends}
  end
  local before = is_wanted and counts_of(ballot) or {}
  if ballot then load(ballot, voters, wanted) end
  for i, request in ipairs(requests) do
    local live = ballot and request.now < ballot.ends and ballot or nil
    local rows = live and live.rows[request.voter] or {}
    local refused = refusal(live, request, rows)
    local reply = {refused or '', #rows > 0 and rows[#rows][2], live and 'same' or 'none'}
    if not refused then
      if not live then
        reply[3], ballot = 'fresh', create(key, request.ends)
        ballot.is_new = true
        load(ballot)
      end
      reserved = (reserved or redis.call('INCRBY', KEYS[1] .. ':numbers', #requests) - #requests) + 1
      record(ballot, request, rows, digits(reserved), reply)
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

-- With `is_conditional`, only if the present definition is `expected`. → whether it was written
function ops.define(key, definition, terms, ends, now, is_conditional, expected, clears)
  local ballot = alive(key, now)
  if is_conditional and (ballot and redis.call('HGET', ballot.name, 'def') or nil) ~= expected then return 0 end
  if clears or not ballot then ballot = create(key, ends) end
  redis.call('HSET', ballot.name, 'def', definition, 'terms', terms)
  if redis.call('EXISTS', ballot.of .. ':t') == 0 then
    redis.call('HSET', ballot.name, 'end', later(ballot.ends, ends))
    set_expiry('b' .. key, later(ballot.ends, ends))
  end
  return 1
end

function ops.definition(key, now)
  local ballot = alive(key, now)
  return ballot and redis.call('HGET', ballot.name, 'def')
end

-- → the counts and the voter's choice
function ops.tally(key, top, voter, now)
  local ballot = alive(key, now)
  local rows = voter and rows_of(ballot, voter) or {}
  return {counts_of(ballot, top), #rows > 0 and rows[#rows][2]}
end

-- key without channel → {choice, count, since}… unsorted, and the voter's choice
function ops.tally_all_channels(group, voter, now)
  local counts, sinces, latest, latest_choice = {}, {}, '', false
  for _, key in ipairs(keys_of_all_channels('b', group)) do
    local ballot = alive(key, now)
    local some = counts_of(ballot)
    for i = 1, #some, 2 do
      local since, choice = string.sub(some[i], 1, 16), string.sub(some[i], 17)
      counts[choice] = (counts[choice] or 0) - tonumber(some[i + 1])
      if not sinces[choice] or since < sinces[choice] then sinces[choice] = since end
    end
    local rows = voter and rows_of(ballot, voter) or {}
    local last = rows[#rows]
    if last and last[1] > latest then latest, latest_choice = last[1], last[2] end
  end
  local found = {}
  for choice, count in pairs(counts) do found[#found + 1] = {choice, count, sinces[choice]} end
  return {found, latest_choice}
end

-- The casts of all voters. Where a voter has one cast, the voters are counted: there may be a million choices.
local function total(ballot)
  if ballot.per_voter == 1 and redis.call('ZCARD', ballot.of .. ':t') > 1000 then
    return redis.call('HLEN', ballot.of .. ':v')
  end
  local counts, sum = counts_of(ballot), 0
  for i = 2, #counts, 2 do sum = sum - tonumber(counts[i]) end
  return sum
end

listed = 'b'
-- → the count, the expiry, the definition
function describe(key, now)
  local ballot = alive(key, now)
  return ballot and {total(ballot), ballot.ends, redis.call('HGET', ballot.name, 'def')}
end

ops.drop = remove.b

-- key without channel → the keys
function ops.drop_all_channels(group)
  local keys = keys_of_all_channels('b', group)
  for _, key in ipairs(keys) do remove.b(key) end
  return keys
end

-- key (without channel, for all channels) → a bound for the numbers to read, then the ids of the live ballots
function ops.begin(key, is_group, now)
  local reply = {next_number()}
  for _, one in ipairs(is_group and keys_of_all_channels('b', key) or {key}) do
    local ballot = alive(one, now)
    if ballot then
      redis.call('SET', ballot.of .. ':r', '', 'PX', READING)
      reply[#reply + 1] = ballot.id
    end
  end
  return reply
end

-- The place of the last of some members; one after all places if there are no more.
local function last_place(members, size)
  return #members == size and string.sub(members[size], 1, 32) or '~'
end

-- → the end of what was read ('' at the end of all), then {cast at, number, voter, choice, times, note}… of the casts that
-- had a number below `bound` when that was the next one, oldest first
function ops.page(start, size, id, bound)
  local of, rows, voters = prefix .. 'm:' .. id, {}, {}
  redis.call('PEXPIRE', of .. ':r', READING)
  redis.call('PEXPIRE', of .. ':k', READING)
  local members = redis.call('ZRANGEBYLEX', of .. ':a', start, '+', 'LIMIT', 0, size)
  local replaced = redis.call('ZRANGEBYLEX', of .. ':k', start, '+', 'LIMIT', 0, size)
  local last, other = last_place(members, size), last_place(replaced, size)
  if other < last then last = other end
  local function add(member, voter, row)
    local number, choice, times, at, note = unpack(row)
    if string.sub(member, 1, 32) <= last and number == string.sub(member, 17, 32) and number < bound then
      rows[#rows + 1] = {at, tonumber(number), voter, choice, times, note}
    end
  end
  for i, member in ipairs(members) do voters[i] = string.sub(member, 33) end
  for i, packed in ipairs(#voters > 0 and redis.call('HMGET', of .. ':v', unpack(voters)) or {}) do
    for _, row in ipairs(cmsgpack.unpack(packed)) do add(members[i], voters[i], row) end
  end
  for _, member in ipairs(replaced) do
    if bound <= string.sub(member, 33, 48) then add(member, unpack(cmsgpack.unpack(string.sub(member, 49)))) end
  end
  if #replaced > 0 then
    table.sort(rows, function(one, two) return one[1] < two[1] or one[1] == two[1] and one[2] < two[2] end)
  end
  return {last == '~' and '' or last .. '\255', rows}
end
