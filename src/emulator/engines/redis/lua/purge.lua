-- now, how many → how many were looked at, then (what it is, its end)… of those that are to be reported

local function purge_log(key, now, most)
  local of = space .. 'le:' .. key
  local due_now = redis.call('ZRANGEBYSCORE', of, '-inf', now, 'LIMIT', 0, most)
  for _, item in ipairs(due_now) do
    redis.call('ZREM', of, item)
    redis.call('ZREM', space .. 'l:' .. key, item)
    redis.call('HDEL', space .. 'lv:' .. key, string.sub(item, 17, 32))
  end
  local next_end = redis.call('ZRANGE', of, 0, 0, 'WITHSCORES')[2]
  if next_end then
    due('l' .. key, next_end)
  else
    local group, place = parts(key)
    redis.call('SREM', space .. 'lp:' .. group, place)
    not_due('l' .. key)
  end
  return #due_now, #due_now > 0 and string.sub(due_now[#due_now], 33, 48)
end

function ops.purge()
  local now, most, said, looked = ARGV[2], tonumber(ARGV[3]), {0}, 0
  local function say(what, at)
    said[#said + 1] = what
    said[#said + 1] = at
  end
  local fallen = redis.call('ZRANGEBYSCORE', space .. 'fallen', '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #fallen, 2 do
    redis.call('ZREM', space .. 'fallen', fallen[i])
    say(string.sub(fallen[i], 17), fallen[i + 1])
    looked = looked + 1
  end
  local ended = redis.call('ZRANGEBYSCORE', space .. 'ends', '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #ended, 2 do
    if looked >= most then break end
    local what, at = ended[i], ended[i + 1]
    local kind, key = string.sub(what, 1, 1), string.sub(what, 2)
    looked = looked + 1
    if kind == 'd' then
      take_document(key)
      say(what, at)
    elseif kind == 'b' then
      take_ballot(key, redis.call('HGET', space .. 'b:' .. key, 'id'))
      say(what, at)
    elseif kind == 'l' then
      local count, newest = purge_log(key, now, most)
      looked = looked + count
      if newest then say(what, newest) end
    elseif kind == 'p' then
      take_pool(key)
      say(what, at)
    elseif kind == 'g' then
      take_handed(string.sub(key, 17), string.sub(key, 1, 16))
    elseif kind == 's' then
      take_list(key)
    elseif kind == 'r' then
      local group, name = parts(key)
      take_roster(key, string.sub(redis.call('HGET', space .. 'r:' .. group, name), 17))
    end
  end
  said[1] = looked
  return said
end

-- The next generation begins, and with it nothing is there. → nothing
function ops.reset()
  redis.call('SADD', KEYS[1] .. ':dead', redis.call('GET', KEYS[1]) or '0')
  redis.call('INCR', KEYS[1])
  return 1
end

return ops[ARGV[1]]()
