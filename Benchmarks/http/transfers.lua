-- Each request is a transfer of one minor unit under a key of its own. The body and token come from the environment.
local count = 0
local body, token = os.getenv("LARDER_BODY"), os.getenv("LARDER_TOKEN")
local salt = tostring(os.time())
request = function()
    count = count + 1
    return wrk.format("POST", "/v1/transfers", {
        ["Content-Type"] = "application/json", ["Authorization"] = "Bearer " .. token,
        ["Idempotency-Key"] = salt .. "-" .. tostring(count),
    }, body)
end
