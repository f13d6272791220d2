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
    elseif kind == 'q' then
      remove_roster(key)
    end
  end
  reply[1] = handled
  return reply
end

-- → nothing. The keys of the previous generation are unreachable; `tidy` deletes them.
function ops.reset()
  show_generation(next_number())
  return 1
end

-- → the generations of which keys may remain
function ops.dead()
  local dead = redis.call('ZRANGEBYSCORE', KEYS[1] .. ':dead', '-inf', redis.call('TIME')[1])
  for _, generation in ipairs(dead) do redis.call('ZADD', KEYS[1] .. ':dead', 0, generation) end
  return dead
end

-- generations… → nothing. None of their keys remain.
function ops.bury()
  for i = 2, #ARGV do redis.call('ZREM', KEYS[1] .. ':dead', ARGV[i]) end
  return 1
end

return ops[ARGV[1]]()
