import LarderHTTP

extension HTTPURL {
    /// Parses the URL of a request.
    ///
    /// - Throws: `.invalidURL` unless it is an absolute `http` or `https` URL without user information.
    init(requested text: String) throws(TransportError) {
        guard let url = HTTPURL(encoding: text, schemes: [.http, .https]), url.userInfo == nil else {
            let shown = HTTPURL.redacted(text)
            throw TransportError(
                .invalidURL,
                "'\(shown)' is not an absolute http or https URL without user information."
            )
        }
        self = url
    }
}
