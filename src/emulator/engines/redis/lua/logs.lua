-- l:<key>: the items of a log by age, as text of their instant, number and end · lv:<key> number → value ·
-- le:<key>: the same items by their ends. lp:<key without place>: the places.

-- key, now, end, value → nothing
function ops.append()
  local key, ends = ARGV[2], ARGV[4]
  local mine = number()
  local item = ARGV[3] .. mine .. ends
  redis.call('ZADD', space .. 'l:' .. key, 0, item)
  redis.call('HSET', space .. 'lv:' .. key, mine, ARGV[5])
  redis.call('ZADD', space .. 'le:' .. key, ends, item)
  redis.call('ZADD', space .. 'ends', 'LT', ends, 'l' .. key)
  local group, place = parts(key)
  redis.call('SADD', space .. 'lp:' .. group, place)
  return 1
end

local function latest(key, now)
  if redis.call('ZCOUNT', space .. 'le:' .. key, '(' .. now, '+inf') == 0 then return nil end
  local from = '+'
  while true do
    local some = redis.call('ZREVRANGEBYLEX', space .. 'l:' .. key, from, '-', 'LIMIT', 0, 50)
    for _, item in ipairs(some) do
      if tonumber(string.sub(item, 33, 48)) > tonumber(now) then return string.sub(item, 1, 16) end
    end
    if #some < 50 then return nil end
    from = '(' .. some[#some]
  end
end

-- now, whether all places, key (without place) → the last number of what is to be read, the newest live instant, then
-- the keys of the places that have live items
function ops.begin()
  local keys = {ARGV[4]}
  if ARGV[3] == '1' then
    keys = redis.call('SMEMBERS', space .. 'lp:' .. ARGV[4])
    for i, place in ipairs(keys) do keys[i] = ARGV[4] .. '|' .. place end
  end
  local begun = {string.format('%016.0f', redis.call('GET', KEYS[1] .. ':numbers') or 0), false}
  for _, key in ipairs(keys) do
    local at = latest(key, ARGV[2])
    if at then
      if not begun[2] or at > begun[2] then begun[2] = at end
      begun[#begun + 1] = key
    end
  end
  return begun
end

-- key, from, since, last number, now, size → how far this came ('' for the end), then (position, value)…
function ops.page()
  local key, from, bound, now, size = ARGV[2], ARGV[3], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
  local rows, reached = {}, ''
  for _ = 1, 4 do
    local some = redis.call('ZREVRANGEBYLEX', space .. 'l:' .. key, from, '[' .. ARGV[4], 'LIMIT', 0, size)
    for _, item in ipairs(some) do
      local mine = string.sub(item, 17, 32)
      if #rows < size and mine <= bound and tonumber(string.sub(item, 33, 48)) > now then
        rows[#rows + 1] = {string.sub(item, 1, 32), redis.call('HGET', space .. 'lv:' .. key, mine)}
      end
    end
    if #rows >= size then return {rows[size][1], rows} end
    if #some < size then return {'', rows} end
    reached = string.sub(some[#some], 1, 32)
    from = '(' .. reached
  end
  return {reached, rows}
end

return ops[ARGV[1]]()
