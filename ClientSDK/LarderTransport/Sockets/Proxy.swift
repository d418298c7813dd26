import LarderCoding
import LarderHTTP

/// A proxy, and what it is shown.
struct Proxy: Sendable, Hashable, CustomStringConvertible {
    /// In lower case; an IPv6 address without brackets.
    let host: String
    let port: Int
    /// The value of `Proxy-Authorization` (RFC 7617); nil: none.
    let authorization: String?

    init(_ url: HTTPURL) {
        host = url.host
        port = url.port
        authorization = url.userInfo.map { info in
            let parts = info.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map {
                QueryString.percentDecoded(Array($0.utf8)) ?? String($0)
            }
            return "Basic " + Base64.encode(Array("\(parts[0]):\(parts.count > 1 ? parts[1] : "")".utf8))
        }
    }

    /// Without credentials.
    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// The line of the request's head; empty without credentials.
    var authorizationLine: String { authorization.map { "Proxy-Authorization: \($0)\r\n" } ?? "" }
}
