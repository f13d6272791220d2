-- A reading that is not gone on with for so long was left by a process that is no more.
local LEASE = 3600000

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
