import LarderHTTP
import LarderImages
import LarderTime
import LarderTransport
import Synchronization
import Testing

/// A gate at which tasks wait until it is opened. A cancelled task throws.
final class Gate: Sendable {
    private struct State {
        var isOpen: Bool
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var last = 0
    }

    private let state: Mutex<State>

    init(isOpen: Bool = false) { state = Mutex(State(isOpen: isOpen)) }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.resume() }
    }

    func pass() async throws(TransportError) {
        let id = state.withLock { state in
            state.last += 1
            return state.last
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let passes = state.withLock { state in
                    if state.isOpen || Task.isCancelled { return true }
                    state.waiting[id] = continuation
                    return false
                }
                if passes { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
        }
        if Task.isCancelled { throw TransportError(.cancelled, "The exchange was cancelled.") }
    }
}

/// A scripted server of pictures: its files, the faults of its replies, and gates for their times.
final class PictureServer: Transport {
    struct File {
        var bytes: [UInt8]
        var tag: String? = "\"v1\""
        var fields: Fields = [.cacheControl: "max-age=60"]
        /// For each reply in turn: the number of bytes after which it is interrupted.
        var breaks: [Int] = []
        /// For each reply in turn: the index of the flipped byte.
        var flips: [Int] = []
        /// For each reply in turn: the status instead of a picture.
        var statuses: [Int] = []
        /// The fields of those replies.
        var statusFields = Fields()
        /// Where the URL redirects to, instead of a picture.
        var location: String?
        var redirectStatus = 302
        var gate: Gate?
        /// In the middle of the content.
        var bodyGate: Gate?
        /// Where pieces end, instead of each after `pieceLength` bytes.
        var pieceEnds: [Int] = []
        /// For each piece but the first in turn.
        var pieceGates: [Gate] = []
    }

    private struct State {
        var files: [String: File] = [:]
        var requests: [TransportRequest] = []
        var isOffline = false
    }

    private let state = Mutex(State())
    private let pieceLength: Int

    init(pieceLength: Int = 100) { self.pieceLength = pieceLength }

    var requests: [TransportRequest] { state.withLock { $0.requests } }

    var isOffline: Bool {
        get { state.withLock { $0.isOffline } }
        set { state.withLock { $0.isOffline = newValue } }
    }

    subscript(url: String) -> File? {
        get { state.withLock { $0.files[url] } }
        set { state.withLock { $0.files[url] = newValue } }
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await Redirection.follow(request) { (hop) async throws(TransportError) in try await self.answer(hop) }
    }

    private func answer(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        let (file, isOffline) = state.withLock { state in
            state.requests.append(request)
            return (state.files[request.url], state.isOffline)
        }
        if let gate = file?.gate { try await gate.pass() }
        if isOffline { throw TransportError(.unreachable, "There is no network.") }
        guard let file else { return reply(404) }
        let script = state.withLock { state -> (status: Int?, end: Int?, flip: Int?) in
            func first(_ list: WritableKeyPath<File, [Int]>) -> Int? {
                guard var file = state.files[request.url], !file[keyPath: list].isEmpty else { return nil }
                let value = file[keyPath: list].removeFirst()
                state.files[request.url] = file
                return value
            }
            return (first(\.statuses), first(\.breaks), first(\.flips))
        }
        if let status = script.status { return reply(status, file.statusFields) }
        var fields = file.fields
        if let location = file.location {
            fields.set(.location, location)
            return reply(file.redirectStatus, fields)
        }
        if let tag = file.tag { fields.set(.etag, tag) }
        if file.tag != nil, request.fields[.ifNoneMatch] == file.tag { return reply(304, fields) }
        var content = file.bytes
        if let flip = script.flip { content[flip] ^= 0x10 }
        var status = 200
        if let range = request.fields[.range], request.fields[.ifRange] == file.tag,
            let start = Int(range.dropFirst(6).dropLast())
        {
            fields.set(.contentRange, "bytes \(start)-\(content.count - 1)/\(content.count)")
            content = Array(content[start...])
            status = 206
        }
        fields.set(.contentLength, "\(content.count)")
        return reply(status, fields, content, breaksAfter: script.end, file)
    }

    private func reply(
        _ status: Int,
        _ fields: Fields = Fields(),
        _ content: [UInt8] = [],
        breaksAfter end: Int? = nil,
        _ file: File? = nil
    ) -> TransportStream {
        let sent = Mutex(0)
        let gates = Mutex(file?.pieceGates ?? [])
        let pieceLength = pieceLength
        let body = TransportStream.Body { () async throws(TransportError) -> [UInt8]? in
            let start = sent.withLock { $0 }
            if let end, start >= end { throw TransportError(.interrupted, "The connection broke.") }
            if start >= content.count { return nil }
            if start > 0, let gate = file?.bodyGate { try await gate.pass() }
            if start > 0, let gate = gates.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { try await gate.pass() }
            let length = file?.pieceEnds.isEmpty ?? true ? start + pieceLength : content.count
            let pieceEnd = file?.pieceEnds.first { $0 > start } ?? length
            let next = min(pieceEnd, content.count, end ?? .max)
            sent.withLock { $0 = next }
            return Array(content[start..<next])
        }
        return TransportStream(status: Status(code: status), fields: fields, body: body)
    }
}

/// Records the events of a pipeline and waits for them.
final class ImageLog: Sendable {
    private struct State {
        var events: [ImagePipeline.Event] = []
        var waiting: [(holds: @Sendable ([ImagePipeline.Event]) -> Bool, isAwake: Pending<Void>)] = []
    }

    private let state = Mutex(State())

    var events: [ImagePipeline.Event] { state.withLock { $0.events } }

    func add(_ event: ImagePipeline.Event) {
        let ready = state.withLock { state in
            state.events.append(event)
            let events = state.events
            let ready = state.waiting.filter { $0.holds(events) }.map(\.isAwake)
            state.waiting.removeAll { $0.holds(events) }
            return ready
        }
        for isAwake in ready { isAwake.finish(()) }
    }

    /// Waits until the events satisfy a condition or the waiting task is cancelled.
    func wait(until holds: @escaping @Sendable ([ImagePipeline.Event]) -> Bool) async {
        let isAwake = Pending<Void>()
        let isReady = state.withLock { state in
            if holds(state.events) { return true }
            state.waiting.append((holds, isAwake))
            return false
        }
        if !isReady { await isAwake.value(ifCancelled: ()) }
    }

    /// The number of matching events.
    func count(_ holds: (ImagePipeline.Event) -> Bool) -> Int { events.count(where: holds) }

    var downloads: Int { count { if case .downloadStarted = $0 { true } else { false } } }
    var decodes: Int { count { if case .decoded = $0 { true } else { false } } }
    var cancelled: Int { count { if case .cancelled = $0 { true } else { false } } }
    var damaged: Int { count { if case .damaged = $0 { true } else { false } } }

    /// Waits until a number of downloads have started.
    func waitForDownloads(_ count: Int) async {
        await wait { $0.count { if case .downloadStarted = $0 { true } else { false } } >= count }
    }
}

/// A clock on which every wait ends immediately and no time passes.
struct NoWaitClock: MonotonicClock {
    private let base: any MonotonicClock
    private let onWait: @Sendable (Duration) async throws -> Void

    /// - Parameter onWait: called and awaited with the length of each wait.
    init(_ base: any MonotonicClock, onWait: @escaping @Sendable (Duration) async throws -> Void = { _ in }) {
        self.base = base
        self.onWait = onWait
    }

    var uptime: MonotonicTime { base.uptime }

    func sleep(until time: MonotonicTime) async throws(CancellationError) {
        do { try await onWait(time - uptime) } catch { throw CancellationError() }
        if Task.isCancelled { throw CancellationError() }
    }
}
