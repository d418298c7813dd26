-- Each request is a transfer of one minor unit under its own key. Body and token come from the environment.
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
