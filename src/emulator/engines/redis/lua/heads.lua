-- b:<key>: what is known of a ballot as a whole; its `id` names what belongs to it until it ends:
-- m:<id>:v voter → what the voter holds · :a those by age · :c choice → since when it has been held · :t the choices in
-- a tally's order · :r who is reading · :k what was replaced while they read. bp:<key without place>: the places.
local HEAD = {'id', 'end', 'opens', 'closes', 'disabled', 'known', 'voter', 'choice', 'choices'}

local function head_of(key)
  local h = redis.call('HMGET', space .. 'b:' .. key, unpack(HEAD))
  if not h[1] then return nil end
  return {
    id = h[1], of = space .. 'm:' .. h[1], ends = h[2], opens = tonumber(h[3]), closes = tonumber(h[4]),
    disabled = h[5] == '1', known = h[6] == '1', voter = tonumber(h[7]), choice = tonumber(h[8]),
    choices = tonumber(h[9])
  }
end

local function alive(key, now)
  local head = head_of(key)
  return head and now < tonumber(head.ends) and head or nil
end

local function keys_everywhere(group)
  local keys = redis.call('SMEMBERS', space .. 'bp:' .. group)
  for i, place in ipairs(keys) do keys[i] = group .. '|' .. place end
  return keys
end
