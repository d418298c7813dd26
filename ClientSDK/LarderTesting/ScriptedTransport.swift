public import Larder
import LarderHTTP
import LarderTime
import Synchronization

/// A transport that answers from a script or by a function, and records requests.
///
/// It never sleeps: use a `TransportGate` to delay a reply. It enforces `bodyLimit`, and reads an `upload` before it replies. A request
/// after the end of the script fails as unreachable. Safe from any task.
///
/// ```swift
/// let transport = ScriptedTransport { request, number in
///     number == 1 ? .failure(TransportError(.interrupted, "gone")) : .text("{}")
/// }
/// let client = try await APIClient(
///     server: "http://test", account: "ana", directory: "/var/tmp/test", APIClient.Configuration(transport: transport)
/// )
/// try? await client.source.send(.put, "/articles/7/star")
/// print(transport.requests.map(\.url))                        // ["http://test/articles/7/star"]
/// ```
public final class ScriptedTransport: Transport {
    private struct State {
        var replies: [Reply]
        var requests: [TransportRequest] = []
        var uploads: [[UInt8]] = []
        var inFlight = 0
        var abandoned = 0
        var watchers: [(id: UInt64, count: Int, pending: Pending<Bool>)] = []
        var lastID: UInt64 = 0
    }

    private let state: Mutex<State>
    private let answer: (@Sendable (TransportRequest, Int) async throws(TransportError) -> Reply)?

    /// - Parameter script: the replies in order.
    public init(script: [Reply]) {
        state = Mutex(State(replies: script))
        answer = nil
    }

    /// - Parameter answer: returns the reply to a request, by its number from 1.
    public init(
        _ answer:
            @escaping @Sendable (_ request: TransportRequest, _ number: Int) async throws(TransportError) ->
            Reply
    ) {
        state = Mutex(State(replies: []))
        self.answer = answer
    }

    /// All requests, in order.
    public var requests: [TransportRequest] { state.withLock { $0.requests } }

    /// The content of the requests with an `upload`, in the order in which it was read to its end.
    public var uploads: [[UInt8]] { state.withLock { $0.uploads } }

    /// The number of exchanges whose head or content is still expected.
    public var inFlightCount: Int { state.withLock { $0.inFlight } }

    /// The number of exchanges that their caller has abandoned.
    public var abandonedCount: Int { state.withLock { $0.abandoned } }

    /// Appends replies to the script.
    public func append(_ replies: Reply...) { state.withLock { $0.replies += replies } }

    /// Waits for a total number of requests. Returns at once if the calling task is cancelled.
    public func waitForRequests(_ count: Int) async {
        let pending = Pending<Bool>()
        let (id, isThere) = state.withLock { state in
            state.lastID += 1
            guard state.requests.count < count else { return (state.lastID, true) }
            state.watchers.append((state.lastID, count, pending))
            return (state.lastID, false)
        }
        if isThere { pending.finish(true) }
        _ = await pending.value(ifCancelled: false) {
            self.state.withLock { $0.watchers.removeAll { $0.id == id } }
        }
    }

    /// Returns the next reply as a stream of its steps.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let (number, scripted, seen) = state.withLock { state in
            state.requests.append(request)
            let count = state.requests.count
            let seen = state.watchers.filter { $0.count <= count }.map(\.pending)
            state.watchers.removeAll { $0.count <= count }
            let next = answer != nil || state.replies.isEmpty ? nil : state.replies.removeFirst()
            return (count, next, seen)
        }
        for pending in seen { pending.finish(true) }
        let exchange = ScriptedExchange(limit: request.bodyLimit) { [weak self] isWhole in
            self?.state.withLock { state in
                state.inFlight -= 1
                if !isWhole { state.abandoned += 1 }
            }
        }
        state.withLock { $0.inFlight += 1 }
        if Task.isCancelled { throw TransportError(.cancelled, "The request was cancelled before it was sent.") }
        if let upload = request.upload {
            do throws(TransportError) { try await read(upload) } catch {
                exchange.end(error)
                throw error
            }
        }
        let reply: Reply
        do throws(TransportError) {
            guard let next = if let answer { try await answer(request, number) } else { scripted } else {
                throw TransportError(.unreachable, "The script has no more replies.")
            }
            reply = next
        } catch {
            exchange.end(error)
            throw error
        }
        for gate in reply.gates { try await gate.pass() }
        switch reply.head {
        case .failure(let error):
            exchange.end()
            throw error
        case .success(let head):
            exchange.begin(reply.steps)
            return TransportStream(
                status: head.status,
                fields: head.fields,
                body: TransportStream.Body { () async throws(TransportError) in try await exchange.next() }
            )
        }
    }
}

extension ScriptedTransport {
    private func read(_ upload: RequestBody) async throws(TransportError) {
        var bytes: [UInt8] = []
        let isWhole = try await upload.write(try await upload.length()) { piece, _ in
            bytes += piece
            return !Task.isCancelled
        }
        guard isWhole else { throw TransportError(.cancelled, "The request was cancelled while its body was read.") }
        state.withLock { $0.uploads.append(bytes) }
    }
}

/// One exchange. Releasing it before its end abandons it.
private final class ScriptedExchange: Sendable {
    private struct State {
        var steps: [ScriptedTransport.Reply.Step] = []
        var left: Int
        var isOver = false
        var failure: TransportError?
    }

    private let state: Mutex<State>
    private let ended: @Sendable (_ isWhole: Bool) -> Void

    init(limit: Int, ended: @escaping @Sendable (Bool) -> Void) {
        state = Mutex(State(left: limit))
        self.ended = ended
    }

    deinit { if !state.withLock({ $0.isOver }) { ended(false) } }

    func begin(_ steps: [ScriptedTransport.Reply.Step]) {
        state.withLock { $0.steps = steps }
        if steps.isEmpty { end() }
    }

    func end(_ failure: TransportError? = nil) {
        let isFirst = state.withLock { state in
            defer { state.isOver = true }
            if !state.isOver { state.failure = failure }
            return !state.isOver
        }
        if isFirst { ended(failure?.code != .cancelled) }
    }

    func next() async throws(TransportError) -> [UInt8]? {
        while true {
            let (step, failure): (ScriptedTransport.Reply.Step?, TransportError?) = state.withLock { state in
                if state.isOver { return (nil, state.failure) }
                return (state.steps.isEmpty ? nil : state.steps.removeFirst(), nil)
            }
            if let failure { throw failure }
            guard let step else {
                end()
                return nil
            }
            do throws(TransportError) {
                if let piece = try await take(step) { return piece }
            } catch {
                end(error)
                throw error
            }
        }
    }

    private func take(_ step: ScriptedTransport.Reply.Step) async throws(TransportError) -> [UInt8]? {
        if Task.isCancelled { throw TransportError(.cancelled, "The reader was cancelled.") }
        switch step {
        case .failure(let error): throw error
        case .gate(let gate): try await gate.pass()
        case .silence: try await TransportGate().pass()
        case .bytes(let bytes):
            let fits = state.withLock { state in
                state.left -= bytes.count
                return state.left >= 0
            }
            guard fits else { throw TransportError(.tooLarge, "The content is larger than the request allows.") }
            return bytes
        }
        return nil
    }
}
