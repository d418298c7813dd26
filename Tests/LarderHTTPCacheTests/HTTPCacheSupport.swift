import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import Synchronization

/// A server without a network: replies are computed, held back by gates where a test wants that.
final class Origin: Transport {
    typealias Handler = @Sendable (TransportRequest, _ number: Int) throws(TransportError) -> TransportResponse

    private struct State {
        var requests: [TransportRequest] = []
        var isGated = false
        var held: [CheckedContinuation<Void, Never>] = []
        var arrivals: [(count: Int, isAwake: Pending<Void>)] = []
        var cancelled = 0
        var cancellation: Pending<Void>?
        var pieces: Int?
        var handler: Handler
    }

    private let state: Mutex<State>

    init(_ handler: @escaping Handler) { state = Mutex(State(handler: handler)) }

    /// Answers every request with the next of these, and the last one again and again; with an empty 200 where there is none.
    convenience init(_ replies: TransportResponse...) {
        self.init { _, number throws(TransportError) in
            replies.isEmpty ? TransportResponse(status: .ok) : replies[min(number, replies.count - 1)]
        }
    }

    var requests: [TransportRequest] { state.withLock { $0.requests } }
    var count: Int { requests.count }
    var cancelled: Int { state.withLock { $0.cancelled } }

    func answer(_ handler: @escaping Handler) { state.withLock { $0.handler = handler } }

    /// From now on replies wait until they are released.
    func hold() { state.withLock { $0.isGated = true } }

    /// Lets the replies go that wait, and all later ones.
    func release() {
        let held = state.withLock { state in
            state.isGated = false
            defer { state.held = [] }
            return state.held
        }
        for continuation in held { continuation.resume() }
    }

    /// Lets one reply go: of those that wait, the one at a place.
    func release(at index: Int) {
        let held = state.withLock { $0.held.remove(at: index) }
        held.resume()
    }

    /// Streams break off after so many pieces of four bytes.
    func breakStreams(after pieces: Int?) { state.withLock { $0.pieces = pieces } }

    /// Waits until a held request is released although it was cancelled, or the waiting task is cancelled.
    func waitForCancellation() async {
        let isAwake = Pending<Void>()
        let isOver = state.withLock { state in
            if state.cancelled == 0 { state.cancellation = isAwake }
            return state.cancelled > 0
        }
        if !isOver { await isAwake.value(ifCancelled: ()) }
    }

    /// Waits until so many requests have come in all, or the waiting task is cancelled.
    func waitForRequests(_ count: Int) async {
        let isAwake = Pending<Void>()
        let isThere = state.withLock { state in
            if state.requests.count >= count { return true }
            state.arrivals.append((count, isAwake))
            return false
        }
        if !isThere { await isAwake.value(ifCancelled: ()) }
    }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        let (number, handler, arrivals) = state.withLock { state in
            state.requests.append(request)
            let count = state.requests.count
            let arrivals = state.arrivals.filter { $0.count <= count }
            state.arrivals.removeAll { $0.count <= count }
            return (count - 1, state.handler, arrivals)
        }
        // A held request is counted as arrived once it waits: releasing it then is sure to find it.
        await withCheckedContinuation { continuation in
            let isHeld = state.withLock { state in
                if state.isGated { state.held.append(continuation) }
                return state.isGated
            }
            if !isHeld { continuation.resume() }
            for arrival in arrivals { arrival.isAwake.finish(()) }
        }
        if Task.isCancelled {
            let cancellation = state.withLock { state in
                state.cancelled += 1
                return state.cancellation.take()
            }
            cancellation?.finish(())
            throw TransportError(.cancelled, "given up")
        }
        return try handler(request, number)
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let response = try await send(request)
        let limit = state.withLock { $0.pieces }
        let rest = Mutex((bytes: response.body[...], pieces: 0))
        return TransportStream(
            status: response.status,
            fields: response.fields,
            body: TransportStream.Body { () throws(TransportError) in
                let piece: [UInt8]? = rest.withLock { rest in
                    if let limit, rest.pieces >= limit { return nil }
                    rest.pieces += 1
                    defer { rest.bytes = rest.bytes.dropFirst(4) }
                    return Array(rest.bytes.prefix(4))
                }
                guard let piece else { throw TransportError(.interrupted, "broke off") }
                return piece.isEmpty ? nil : piece
            },
            redirectedTo: response.redirectedTo
        )
    }
}

/// A cache before an origin, on a clock that is moved by hand.
struct CacheStage {
    static let url = "http://origin.test/a"

    let clock: ManualClock
    let origin: Origin
    let cache: HTTPCache
    let failures = Failures()

    final class Failures: Sendable {
        private let state = Mutex(0)
        var count: Int { state.withLock { $0 } }
        func note() { state.withLock { $0 += 1 } }
    }

    init(
        _ origin: Origin,
        storage: any HTTPCacheStorage = DiskHTTPCacheStorage(inMemory: 16 << 20),
        clock: ManualClock = ManualClock(WallTime(seconds: 1_790_000_000)),
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) {
        (self.origin, self.clock) = (origin, clock)
        var configuration = HTTPCache.Configuration(storage: storage, clock: clock)
        configuration.onStorageFailure = { [failures] _ in failures.note() }
        change(&configuration)
        cache = HTTPCache(origin, configuration)
    }

    func get(
        _ fields: Fields = Fields(),
        url: String = CacheStage.url,
        method: LarderHTTP.Method = .get
    ) async throws -> HTTPCache.Response {
        try await cache.response(for: TransportRequest(method: method, url: url, fields: fields))
    }

    /// A date relative to the clock's present time.
    func date(_ offset: Int64 = 0) -> String { HTTPDate.format(clock.now + .seconds(offset)) }
}

/// A reply with fields and a body of text.
func reply(_ fields: Fields = Fields(), _ body: String = "content", status: Int = 200) -> TransportResponse {
    TransportResponse(status: Status(code: status), fields: fields, body: Array(body.utf8))
}

extension HTTPCache.Response {
    var text: String { String(decoding: body, as: UTF8.self) }
}

extension FieldName {
    /// A name that the test wrote itself.
    static func custom(_ name: String) -> FieldName { FieldName(name) ?? .host }
}

/// A switch that closures may look at.
final class Flag: Sendable {
    private let state = Mutex(false)
    var value: Bool { state.withLock { $0 } }
    func set(_ value: Bool) { state.withLock { $0 = value } }
}
