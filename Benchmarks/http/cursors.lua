-- Feed pages behind the cursors in LARDER_CURSORS, in turn: each page recurs too rarely to be cached.
local requests = {}
for cursor in os.getenv("LARDER_CURSORS"):gmatch("%S+") do
  requests[#requests + 1] = "GET /v1/feed?limit=20&after=" .. cursor .. " HTTP/1.1\r\nHost: bench\r\n\r\n"
end
local index = 0

request = function()
  index = index % #requests + 1
  return requests[index]
end
