import LarderHTTP

extension HTTPURL {
    /// Parses the URL of a request that is sent without TLS.
    ///
    /// - Throws: `.invalidURL` unless it is an absolute `http` URL without user information.
    init(plain text: String) throws(TransportError) {
        guard let url = HTTPURL(encoding: text, schemes: [.http]), url.userInfo == nil else {
            let shown = HTTPURL.redacted(text)
            throw TransportError(
                .invalidURL,
                "'\(shown)' is not an absolute http URL without user information. For https use HTTPTransport of LarderURLSession."
            )
        }
        self = url
    }
}
