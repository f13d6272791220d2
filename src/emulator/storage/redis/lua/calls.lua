-- The end of every script: runs calls, each packed as the name of an operation and its arguments.
local function run(name, ...)
  return ops[name](...)
end

local replies = {}
for i, call in ipairs(ARGV) do
  local is_done, reply = pcall(run, cmsgpack.unpack(call))
  if is_done then replies[i] = reply or false
  else replies[i] = {err = type(reply) == 'table' and reply.err or reply} end
end
return replies
