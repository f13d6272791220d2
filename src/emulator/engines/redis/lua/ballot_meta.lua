-- b:<key>        hash: id, expiry, terms and definition of a ballot; the keys below contain the id
-- m:<id>:v       hash: voter → the voter's casts
-- m:<id>:a       sorted set: the same by age
-- m:<id>:c       hash: choice → the number of the cast since when it has had casts
-- m:<id>:t       sorted set: choices in a tally's order
-- m:<id>:r       hash: the active readings
-- m:<id>:k       sorted set: entries that were replaced during them
-- m:<id>:h       list: the changes of the counts by the latest turns, if several processes cast: the turn before, the
--                turn, and choice, count, since…. A turn is one call of `cast`, named by the number of its last cast
-- bp:<key without channel>  set: the channels
local FIELDS = {'id', 'end', 'opens', 'closes', 'disabled', 'known', 'voter', 'choice', 'choices', 'turn', 'shared'}

local function find(key)
  local values = redis.call('HMGET', prefix .. 'b:' .. key, unpack(FIELDS))
  if not values[1] then return nil end
  return {
    name = prefix .. 'b:' .. key, id = values[1], of = prefix .. 'm:' .. values[1], ends = values[2], opens = tonumber(values[3]),
    closes = tonumber(values[4]), disabled = values[5] == '1', known = values[6] == '1', per_voter = tonumber(values[7]),
    per_choice = tonumber(values[8]), choices = tonumber(values[9]),
    turn = values[10] or values[1], is_shared = values[11] == '1'
  }
end

local function alive(key, now)
  local ballot = find(key)
  return ballot and now < tonumber(ballot.ends) and ballot or nil
end
