-- The newest feed page. Every twentieth request sets or clears a like on one of its posts instead, as the user of LARDER_TOKEN.
local token = os.getenv("LARDER_TOKEN")
local page = "GET /v1/feed?limit=20 HTTP/1.1\r\nHost: bench\r\n\r\n"
local count = 0

request = function()
  count = count + 1
  if count % 20 > 0 then return page end
  local change = count / 20
  local method = change % 2 == 0 and "PUT" or "DELETE"
  return method .. " /v1/posts/post_" .. (999 - math.floor(change / 2) % 15) .. "/like HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer "
    .. token .. "\r\nContent-Length: 0\r\n\r\n"
end
