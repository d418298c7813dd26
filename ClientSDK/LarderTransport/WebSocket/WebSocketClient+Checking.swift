package import LarderHTTP

extension WebSocketClient.Request {
    /// Parses the URL (RFC 6455 §3) and checks the subprotocols, which must be distinct tokens.
    ///
    /// - Throws: `.invalidRequest` with the reason.
    package func checkedURL() throws(WebSocketError) -> HTTPURL {
        func fail(_ reason: String) -> WebSocketError {
            WebSocketError(.invalidRequest, "'\(HTTPURL.redacted(url))' \(reason).")
        }
        for name in subprotocols where FieldName(name) == nil {
            throw WebSocketError(.invalidRequest, "The subprotocol '\(name)' is not a token (RFC 9110 section 5.6.2).")
        }
        guard Set(subprotocols).count == subprotocols.count else {
            throw WebSocketError(.invalidRequest, "A subprotocol is listed twice.")
        }
        guard let parsed = HTTPURL(encoding: url, schemes: [.ws, .wss]) else {
            throw fail("is not an absolute ws or wss URL with a valid host and port")
        }
        guard parsed.userInfo == nil else { throw fail("contains user information: send it in Authorization") }
        guard !url.contains("#") else { throw fail("has a fragment, which a WebSocket URL must not have") }
        return parsed
    }
}
