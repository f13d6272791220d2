-- l:<key>                     sorted set: the entries of a log by age, as time, number and expiry, 16 digits each
-- le:<key>                    sorted set: the same by expiry
-- lv:<key>                    hash: number → value
-- lp:<key without channel>    set: the channels

-- key, now, expiry, value → nothing
function ops.append()
  append_entry(ARGV[2], ARGV[3], ARGV[4], ARGV[5])
  return 1
end

-- The time of the newest live entry, if there is one.
local function latest(key, now)
  if redis.call('ZCOUNT', prefix .. 'le:' .. key, '(' .. now, '+inf') == 0 then return nil end
  local from = '+'
  while true do
    local some = redis.call('ZREVRANGEBYLEX', prefix .. 'l:' .. key, from, '-', 'LIMIT', 0, 50)
    for _, item in ipairs(some) do
      if tonumber(string.sub(item, 33, 48)) > tonumber(now) then return string.sub(item, 1, 16) end
    end
    if #some < 50 then return nil end
    from = '(' .. some[#some]
  end
end

listed = 'l'
-- → how many entries are alive, the time of the newest
function describe(key, now)
  local at = latest(key, now)
  return at and {redis.call('ZCOUNT', prefix .. 'le:' .. key, '(' .. now, '+inf'), at}
end

-- now, whether all channels, key (without channel) → the last number to read, the time of the newest live entry, then the
-- keys of the logs that have live entries
function ops.begin()
  local keys = ARGV[3] == '1' and keys_of_all_channels('lp', ARGV[4]) or {ARGV[4]}
  local reply = {string.format('%016.0f', redis.call('GET', KEYS[1] .. ':numbers') or 0), false}
  for _, key in ipairs(keys) do
    local at = latest(key, ARGV[2])
    if at then
      if not reply[2] or at > reply[2] then reply[2] = at end
      reply[#reply + 1] = key
    end
  end
  return reply
end

-- key, from, since, last number, now, size → the last position ('' at the end), then (position, value)…
function ops.page()
  local key, from, bound, now, size = ARGV[2], ARGV[3], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
  local rows, last = {}, ''
  for _ = 1, 4 do
    local some = redis.call('ZREVRANGEBYLEX', prefix .. 'l:' .. key, from, '[' .. ARGV[4], 'LIMIT', 0, size)
    for _, item in ipairs(some) do
      local number = string.sub(item, 17, 32)
      if #rows < size and number <= bound and tonumber(string.sub(item, 33, 48)) > now then
        rows[#rows + 1] = {string.sub(item, 1, 32), redis.call('HGET', prefix .. 'lv:' .. key, number)}
      end
    end
    if #rows >= size then return {rows[size][1], rows} end
    if #some < size then return {'', rows} end
    last = string.sub(some[#some], 1, 32)
    from = '(' .. last
  end
  return {last, rows}
end

return ops[ARGV[1]]()
