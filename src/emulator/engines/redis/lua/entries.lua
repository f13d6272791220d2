-- Milliseconds after which a reading that fetched no page counts as abandoned by a crashed process.
local LEASE = 3600000

-- reading, now, whether all channels, key (without channel) → a bound for the numbers to read, then the ballots' ids
function ops.begin()
  local keys = ARGV[4] == '1' and keys_of_all_channels('bp', ARGV[5]) or {ARGV[5]}
  local reply = {next_number()}
  for _, key in ipairs(keys) do
    local ballot = alive(key, tonumber(ARGV[3]))
    if ballot then
      redis.call('HSET', ballot.of .. ':r', ARGV[2], reply[1])
      redis.call('PEXPIRE', ballot.of .. ':r', LEASE)
      reply[#reply + 1] = ballot.id
    end
  end
  return reply
end

-- The rows that `parse` returns for the members of a set sorted by age, and the last position unless that is the end.
local function fetch(set, from, size, parse)
  local found = {}
  for _ = 1, 4 do
    local some = redis.call('ZRANGEBYLEX', set, from, '+', 'LIMIT', 0, size)
    for _, member in ipairs(some) do
      local position = string.sub(member, 1, 32)
      local row = parse(member, string.sub(member, 17, 32))
      if row then found[#found + 1] = {position, unpack(row)} end
    end
    if #some < size then return found, nil end
    local last = string.sub(some[#some], 1, 32)
    if #found >= size then return found, last end
    from = '(' .. last .. '\255'
  end
  return found, string.sub(from, 2, 33)
end

-- id, reading, from, bound, size → the last position ('' at the end), then rows: position, voter, choice, times, note
function ops.page()
  local of, bound, size = prefix .. 'm:' .. ARGV[2], ARGV[5], tonumber(ARGV[6])
  redis.call('PEXPIRE', of .. ':r', LEASE)
  local rows, last = fetch(of .. ':a', ARGV[4], size, function(member, number)
    if number >= bound then return nil end
    local voter = string.sub(member, 33)
    for _, row in ipairs(cmsgpack.unpack(redis.call('HGET', of .. ':v', voter))) do
      if row[1] == number then return {voter, row[2], row[3], row[5]} end
    end
  end)
  -- A replaced entry belongs to the readings that began after its cast and before its replacement.
  local old, last_old = fetch(of .. ':k', ARGV[4], size, function(member, number)
    if number >= bound or string.sub(member, 33, 48) < bound then return nil end
    return cmsgpack.unpack(string.sub(member, 49))
  end)
  if last_old and (not last or last_old < last) then last = last_old end
  if #old > 0 then
    for _, row in ipairs(old) do rows[#rows + 1] = row end
    table.sort(rows, function(one, other) return one[1] < other[1] end)
  end
  local page = {}
  for _, row in ipairs(rows) do
    if last and row[1] > last then break end
    if #page == size then
      last = page[size][1]
      break
    end
    page[#page + 1] = row
  end
  return {last or '', page}
end

-- reading, ids… → nothing
function ops.finish()
  for i = 3, #ARGV do
    local of = prefix .. 'm:' .. ARGV[i]
    redis.call('HDEL', of .. ':r', ARGV[2])
    if redis.call('EXISTS', of .. ':r') == 0 then redis.call('UNLINK', of .. ':k') end
  end
  return 1
end

return ops[ARGV[1]]()
