local function purge_log(key, now, most)
  local by_expiry = prefix .. 'le:' .. key
  local expired = redis.call('ZRANGEBYSCORE', by_expiry, '-inf', now, 'LIMIT', 0, most)
  for _, item in ipairs(expired) do
    redis.call('ZREM', by_expiry, item)
    redis.call('ZREM', prefix .. 'l:' .. key, item)
    redis.call('HDEL', prefix .. 'lv:' .. key, string.sub(item, 17, 32))
  end
  local next_expiry = redis.call('ZRANGE', by_expiry, 0, 0, 'WITHSCORES')[2]
  if next_expiry then
    set_expiry('l' .. key, next_expiry)
  else
    local group, channel = split(key)
    redis.call('SREM', prefix .. 'lp:' .. group, channel)
    delist('l', key)
    clear_expiry('l' .. key)
  end
  return #expired, #expired > 0 and string.sub(expired[#expired], 33, 48)
end

-- now, most → how many things were handled, then (thing, expiry)… of those to report
function ops.purge()
  local now, most, reply, handled = ARGV[2], tonumber(ARGV[3]), {0}, 0
  local function report(what, at)
    reply[#reply + 1] = what
    reply[#reply + 1] = at
  end
  local noted = redis.call('ZRANGEBYSCORE', prefix .. 'fallen', '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #noted, 2 do
    redis.call('ZREM', prefix .. 'fallen', noted[i])
    report(string.sub(noted[i], 17), noted[i + 1])
    handled = handled + 1
  end
  local expired = redis.call('ZRANGEBYSCORE', prefix .. 'ends', '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #expired, 2 do
    if handled >= most then break end
    local what, at = expired[i], expired[i + 1]
    local kind, key = string.sub(what, 1, 1), string.sub(what, 2)
    handled = handled + 1
    if kind == 'd' then
      remove_document(key)
      report(what, at)
    elseif kind == 'b' then
      remove_ballot(key, redis.call('HGET', prefix .. 'b:' .. key, 'id'))
      report(what, at)
    elseif kind == 'l' then
      local count, newest = purge_log(key, now, most)
      handled = handled + count
      if newest then report(what, newest) end
    elseif kind == 'p' then
      remove_pool(key)
      report(what, at)
    elseif kind == 'g' then
      remove_history(string.sub(key, 17), string.sub(key, 1, 16))
    elseif kind == 's' then
      remove_list(key)
    elseif kind == 'r' then
      remove_roster(key)
    end
  end
  reply[1] = handled
  return reply
end

-- cursor → the next cursor. Enters ballots and logs, some at a time, into the index of earlier versions' data.
function ops.enlist()
  local cursor, members = unpack(redis.call('ZSCAN', prefix .. 'ends', ARGV[2], 'COUNT', 250))
  for i = 1, #members, 2 do
    local what = string.sub(members[i], 1, 1)
    if what == 'b' or what == 'l' then enlist(what, string.sub(members[i], 2)) end
  end
  return cursor
end

-- → nothing. The keys of the previous generation are unreachable; `tidy` deletes them.
function ops.reset()
  redis.call('SADD', KEYS[1] .. ':dead', redis.call('GET', KEYS[1]) or '0')
  redis.call('INCR', KEYS[1])
  return 1
end

-- → the generations of which keys may remain
function ops.dead()
  local abandoned = redis.call('ZRANGEBYSCORE', KEYS[1] .. ':loading', '-inf', redis.call('TIME')[1])
  for _, generation in ipairs(abandoned) do
    redis.call('ZREM', KEYS[1] .. ':loading', generation)
    redis.call('SADD', KEYS[1] .. ':dead', generation)
  end
  return redis.call('SMEMBERS', KEYS[1] .. ':dead')
end

-- generations… → nothing. None of their keys remain.
function ops.bury()
  for i = 2, #ARGV do redis.call('SREM', KEYS[1] .. ':dead', ARGV[i]) end
  return 1
end

return ops[ARGV[1]]()
