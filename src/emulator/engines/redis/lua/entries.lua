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

-- id, reading, from, size → members of the set by age, the casts of each of their voters in the order in which the
-- voters first occur, and members of the set of replaced entries; at most `size` of each
function ops.page()
  local of, from, size = prefix .. 'm:' .. ARGV[2], ARGV[4], tonumber(ARGV[5])
  redis.call('PEXPIRE', of .. ':r', LEASE)
  local members = redis.call('ZRANGEBYLEX', of .. ':a', from, '+', 'LIMIT', 0, size)
  local voters, has = {}, {}
  for _, member in ipairs(members) do
    local voter = string.sub(member, 33)
    if not has[voter] then
      has[voter] = true
      voters[#voters + 1] = voter
    end
  end
  local casts = #voters > 0 and redis.call('HMGET', of .. ':v', unpack(voters)) or {}
  return {members, casts, redis.call('ZRANGEBYLEX', of .. ':k', from, '+', 'LIMIT', 0, size)}
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
