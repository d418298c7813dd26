import LarderHTTP
public import LarderTime
import Synchronization

/// The cookies of one account (RFC 6265), in memory: they last as long as the jar.
///
/// A jar applies domain, path, `Secure` and expiry of each cookie. `SameSite` and `HttpOnly` have no meaning without pages and scripts.
/// There is no list of public suffixes: a cookie for a domain with at least one dot is accepted from all of its hosts. The jar keeps 50
/// cookies of a domain and 1,000 in all, of 4 KiB each; those that were stored first are dropped. Safe from any thread.
///
/// ```swift
/// let jar = CookieJar()
/// let transport = jar.attached(to: SocketTransport())
/// ```
public final class CookieJar: Sendable {
    private struct State {
        var cookies: [Cookie.Key: Cookie] = [:]
        var lastOrdinal = 0
        /// The number of times that the jar was emptied.
        var generation = 0
    }

    static let domainMaximum = 50
    static let countMaximum = 1_000

    private let clock: any WallClock
    private let state = Mutex(State())

    /// - Parameter clock: judges the expiry of cookies.
    public init(clock: any WallClock = SystemWallClock()) { self.clock = clock }

    /// The number of cookies.
    public var count: Int { state.withLock { $0.cookies.count } }

    /// Removes all cookies. Responses to earlier requests store none.
    public func removeAll() {
        state.withLock { state in
            state.cookies = [:]
            state.generation += 1
        }
    }

    /// A transport that sends the cookies and stores those of responses, also of redirects. A request with a `Cookie` field of its own
    /// is sent as it is.
    public func attached(to transport: any Transport) -> any Transport { CookieTransport(jar: self, base: transport) }

    /// A WebSocket client that sends the cookies with its handshakes, and stores those of the replies.
    public func attached(to client: WebSocketClient) -> WebSocketClient {
        client.wrapped { CookieConnector(jar: self, base: $0) }
    }

    /// Adds the cookies of a URL to the fields of a request.
    ///
    /// - Returns: the generation of the jar, for `store`.
    fileprivate func apply(to fields: inout Fields, _ url: String) -> Int {
        guard let url = HTTPURL(url, schemes: [.http, .https, .ws, .wss]) else { return -1 }
        let now = clock.now
        let (cookies, generation) = state.withLock { state in
            (state.cookies.values.filter { $0.belongs(to: url) && !$0.isExpired(at: now) }, state.generation)
        }
        guard !cookies.isEmpty, !fields.contains(.cookie) else { return generation }
        // Longer paths first (RFC 6265 §5.4).
        let ordered = cookies.sorted {
            ($1.key.path.utf8.count, $0.ordinal) < ($0.key.path.utf8.count, $1.ordinal)
        }
        fields.set(.cookie, ordered.map { "\($0.key.name)=\($0.value)" }.joined(separator: "; "))
        return generation
    }

    fileprivate func store(_ fields: Fields, _ url: String, generation: Int) {
        let values = fields.values(of: .setCookie)
        guard !values.isEmpty, let url = HTTPURL(url, schemes: [.http, .https, .ws, .wss]) else { return }
        let now = clock.now
        let received = values.compactMap { Cookie($0, from: url, now: now) }
        state.withLock { state in
            guard state.generation == generation else { return }
            for cookie in received { Self.put(cookie, from: url, now, &state) }
        }
    }

    private static func put(_ cookie: Cookie, from url: HTTPURL, _ now: WallTime, _ state: inout State) {
        var cookie = cookie
        let old = state.cookies[cookie.key]
        // Somebody on the way must not replace what https has set.
        if let old, old.isSecure, !url.scheme.isSecure { return }
        guard !cookie.isExpired(at: now) else {
            state.cookies[cookie.key] = nil
            return
        }
        state.lastOrdinal += 1
        cookie.ordinal = old?.ordinal ?? state.lastOrdinal
        state.cookies[cookie.key] = cookie
        let domain = cookie.key.domain
        if state.cookies.values.count(where: { $0.key.domain == domain }) > domainMaximum {
            drop(&state, now) { $0.key.domain == domain }
        }
        if state.cookies.count > countMaximum { drop(&state, now) { _ in true } }
    }

    /// Removes the first of some cookies, and all that have expired.
    private static func drop(_ state: inout State, _ now: WallTime, of isCandidate: (Cookie) -> Bool) {
        let count = state.cookies.count
        state.cookies = state.cookies.filter { !$0.value.isExpired(at: now) }
        guard state.cookies.count == count,
            let first = state.cookies.values.filter(isCandidate).min(by: { $0.ordinal < $1.ordinal })
        else { return }
        state.cookies[first.key] = nil
    }
}

/// A transport with cookies. Redirects are followed here, so that each hop has its own.
private struct CookieTransport: Transport {
    let jar: CookieJar
    let base: any Transport

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await Redirection.follow(request) { hop throws(TransportError) in
            var hop = hop
            let generation = jar.apply(to: &hop.fields, hop.url)
            let reply = try await base.open(hop)
            jar.store(reply.fields, hop.url, generation: generation)
            return reply
        }
    }
}

private struct CookieConnector: WebSocketConnector {
    let jar: CookieJar
    let base: any WebSocketConnector

    func connect(
        _ request: WebSocketClient.Request,
        _ configuration: WebSocketClient.Configuration
    ) async throws(WebSocketError) -> any WebSocketConnection {
        var request = request
        let generation = jar.apply(to: &request.fields, request.url)
        do throws(WebSocketError) {
            let connection = try await base.connect(request, configuration)
            jar.store(connection.fields, request.url, generation: generation)
            return connection
        } catch {
            jar.store(error.fields, request.url, generation: generation)
            throw error
        }
    }
}
