-- l:<key>    sorted set: the entries of a log by age, as time, number and expiry, 16 digits each
-- le:<key>   sorted set: the same by expiry
-- lv:<key>   hash: number → value

ops.append = append_entry

-- The time of the newest live entry, if there is one.
local function latest(key, now)
  if redis.call('ZCOUNT', prefix .. 'le:' .. key, '(' .. digits(now), '+inf') == 0 then return nil end
  local from = '+'
  while true do
    local some = redis.call('ZREVRANGEBYLEX', prefix .. 'l:' .. key, from, '-', 'LIMIT', 0, 50)
    for _, item in ipairs(some) do
      if tonumber(string.sub(item, 33, 48)) > now then return tonumber(string.sub(item, 1, 16)) end
    end
    if #some < 50 then return nil end
    from = '(' .. some[#some]
  end
end

listed = 'l'
-- → how many entries are alive, the time of the newest
function describe(key, now)
  local at = latest(key, now)
  return at and {redis.call('ZCOUNT', prefix .. 'le:' .. key, '(' .. digits(now), '+inf'), at}
end

-- key (without channel, for all channels) → the last number to read, the time of the newest live entry, then the keys of
-- the logs that have live entries
function ops.begin(key, is_group, now)
  local reply = {digits(redis.call('GET', KEYS[1] .. ':numbers') or 0), 0}
  for _, one in ipairs(is_group and keys_of_all_channels('l', key) or {key}) do
    local at = latest(one, now)
    if at then
      reply[2] = math.max(reply[2], at)
      reply[#reply + 1] = one
    end
  end
  return reply
end

-- → the position of the last entry ('' at the end), then {minus the time, minus the number, value}… of those since a time,
-- with numbers up to `bound`, newest first
function ops.page(start, size, key, bound, since, now)
  local rows, last = {}, ''
  for _ = 1, 4 do
    local some = redis.call('ZREVRANGEBYLEX', prefix .. 'l:' .. key, start, '[' .. digits(since), 'LIMIT', 0, size)
    for _, item in ipairs(some) do
      local number = string.sub(item, 17, 32)
      last = string.sub(item, 1, 32)
      if number <= bound and tonumber(string.sub(item, 33, 48)) > now then
        local value = redis.call('HGET', prefix .. 'lv:' .. key, number)
        rows[#rows + 1] = {-tonumber(string.sub(item, 1, 16)), -tonumber(number), value}
        if #rows == size then return {last, rows} end
      end
    end
    if #some < size then return {'', rows} end
    start = '(' .. last
  end
  return {last, rows}
end
