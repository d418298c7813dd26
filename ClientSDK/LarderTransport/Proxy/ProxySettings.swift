import Foundation
import LarderHTTP

/// Which proxy requests and WebSockets are sent through.
///
/// A request to an `http` URL is sent to its proxy in absolute form (RFC 9112 §3.2.2). For `https`, `ws` and `wss` the proxy opens a tunnel
/// (`CONNECT`, RFC 9110 §9.3.6), so that of https it sees the host and the port only. Loopback addresses and `localhost` are always
/// reached directly. Credentials in the URL are sent to the proxy only, and are in no error and no description.
///
/// ```swift
/// var configuration = SocketTransport.Configuration()
/// configuration.proxies = ProxySettings(https: "http://proxy.example:3128", except: ["intern.example", "10.0.0.0/8"])
/// ```
public struct ProxySettings: Sendable, Hashable {
    /// The proxy of `http` and `ws` URLs: `http://user:password@host:port`, or `host:port`; nil: none.
    public var http: String?
    /// The proxy of `https` and `wss` URLs; nil: none.
    public var https: String?
    /// The hosts that are reached directly: a name stands for itself and its subdomains, an address for itself, `10.0.0.0/8` for a network,
    /// `*` for every host. A port limits the entry to it: `intern.example:8443`.
    public var except: [String]

    /// Creates settings.
    public init(http: String? = nil, https: String? = nil, except: [String] = []) {
        self.http = http
        self.https = https
        self.except = except
    }

    /// The settings of an environment: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, also in lower case, which comes first.
    ///
    /// `HTTP_PROXY` in upper case is ignored where `REQUEST_METHOD` is set, because a client of a CGI program can set it.
    public init(environment: [String: String]) {
        func value(_ name: String) -> String? {
            let upper = name == "http_proxy" && environment["REQUEST_METHOD"] != nil ? nil : name.uppercased()
            return [name, upper].compactMap { $0.flatMap { environment[$0] } }.first { !$0.isEmpty }
        }
        self.init(
            http: value("http_proxy"),
            https: value("https_proxy"),
            except: (value("no_proxy") ?? "").split { $0 == "," || $0 == " " }.map(String.init)
        )
    }

    /// The settings of the process's environment when it was first needed.
    public static let environment = ProxySettings(environment: ProcessInfo.processInfo.environment)

    /// Every host is reached directly.
    public static let none = ProxySettings()

    /// The proxy of a URL; nil: it is reached directly.
    ///
    /// - Throws: `.proxyRejected` if the setting cannot be used.
    func proxy(for url: HTTPURL) throws(TransportError) -> Proxy? {
        guard let text = url.scheme.isSecure ? https : http, !isExcepted(url) else { return nil }
        let whole = text.contains("://") ? text : "http://" + text
        guard let proxy = HTTPURL(whole), proxy.scheme == .http else {
            let variable = url.scheme.isSecure ? "HTTPS_PROXY" : "HTTP_PROXY"
            throw TransportError(
                .proxyRejected,
                "The proxy for \(url.scheme.rawValue) URLs, '\(Self.redacted(text))', cannot be used. Set \(variable) to an http URL, "
                    + "such as http://proxy.example:3128."
            )
        }
        return Proxy(proxy)
    }

    /// Without everything before the last `@`, because a password may contain any character.
    private static func redacted(_ text: String) -> String {
        text.lastIndex(of: "@").map { "…" + text[$0...] } ?? text
    }

    private func isExcepted(_ url: HTTPURL) -> Bool {
        let host = url.host
        if host == "localhost" || host.hasSuffix(".localhost") { return true }
        let address = IPAddress(host)
        if address?.isLoopback == true { return true }
        return except.contains { Self.covers($0, host, address, url.port) }
    }

    private static func covers(_ entry: String, _ host: String, _ address: IPAddress?, _ port: Int) -> Bool {
        if entry == "*" { return true }
        var name = entry.lowercased()[...]
        let network = name.split(separator: "/", omittingEmptySubsequences: false)
        if network.count == 2, let base = IPAddress(String(network[0])), let length = Int(network[1]) {
            return address?.isIn(base, length) == true
        }
        // An IPv6 address without brackets has no port.
        if IPAddress(String(name)) == nil, let colon = name.lastIndex(of: ":"), !name.hasSuffix("]") {
            guard Int(name[name.index(after: colon)...]) == port else { return false }
            name = name[..<colon]
        }
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        if let exact = IPAddress(String(name)) { return exact == address }
        name = name.drop { $0 == "." }
        return !name.isEmpty && address == nil && (host == name || host.hasSuffix("." + name))
    }
}

extension ProxySettings: CustomStringConvertible, CustomReflectable {
    /// Without credentials.
    public var description: String {
        let shown = [http, https].map { $0.map(Self.redacted) ?? "none" }
        return "http: \(shown[0]), https: \(shown[1]), except: \(except.joined(separator: ","))"
    }

    /// Without credentials.
    public var customMirror: Mirror { Mirror(self, children: ["settings": description]) }
}

extension Proxy {
    /// The error of a proxy that rejects a request.
    func rejection(_ status: Status, of authority: String) -> TransportError {
        switch status.code {
        // Some proxies answer with the status of servers.
        case 401, 407:
            TransportError(
                .proxyRejected,
                authorization == nil
                    ? "The proxy \(self) requires credentials (\(status.code)). Add them to its URL: http://user:password@\(self)."
                    : "The proxy \(self) does not accept the credentials of its URL (\(status.code))."
            )
        case 500...599:
            TransportError(
                .unreachable,
                "The proxy \(self) could not connect to \(authority): it answered with \(status.code)."
            )
        default:
            TransportError(
                .proxyRejected,
                "The proxy \(self) does not connect to \(authority): it answered with \(status.code). If the host must be reached "
                    + "directly, add it to NO_PROXY."
            )
        }
    }
}
