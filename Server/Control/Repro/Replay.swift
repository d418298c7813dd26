import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderTime

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What came of running a recorded run again.
public struct ReplayReport: Sendable, CustomStringConvertible {
    /// How many exchanges were compared.
    public let exchanges: Int
    /// Where the runs part, in a sentence; nil where every byte was the same.
    public let difference: String?

    /// The report in a line or a few.
    public var description: String {
        difference ?? "\(exchanges) exchanges, every byte the same"
    }
}

extension MockBackend {
    /// Runs a recorded run again on a backend of its own, and compares every byte of every reply.
    ///
    /// Time stands still but for what the recording and its faults make pass, so it takes no longer than the work does.
    ///
    /// - Parameters:
    ///   - json: the file, as `GET /_larder/repro` gave it.
    ///   - fixtures: where the pictures are, if replies with pictures are part of it.
    public static func replay(_ json: [UInt8], fixtures: String? = nil) async throws -> ReplayReport {
        let repro = try Repro(json)
        let image = try DatabaseImage(bytes: repro.snapshot)
        let images = try fixtures.map { try FixtureReader.images($0) } ?? .empty
        var configuration = Configuration()
        configuration.seed = repro.seed
        let template = WorldTemplate(image: image, images: images)
        let backend = try start(resuming: template, worldID: repro.world, configuration)
        let report: ReplayReport
        do {
            report = try await Replay(repro, backend, try backend.plane.worlds.world(repro.world)).run()
        } catch {
            await backend.stop()
            throw error
        }
        await backend.stop()
        return report
    }
}

/// A run again, step by step.
private struct Replay {
    let repro: Repro
    let backend: MockBackend
    let world: World

    init(_ repro: Repro, _ backend: MockBackend, _ world: World) {
        self.repro = repro
        self.backend = backend
        self.world = world
    }

    func run() async throws -> ReplayReport {
        world.clock.freeze(at: repro.time)
        world.control.change { settings in
            settings.dialect = repro.dialect
            settings.drift = repro.drift
            settings.skews = repro.skews
        }
        _ = try backend.plane.setFaults(repro.faults, in: world)
        try backend.plane.record(world, secretSeed: repro.secretSeed)
        let start = world.clock.uptime
        var sockets: [Int: ReplaySocket] = [:]
        for (index, step) in repro.steps.enumerated() {
            let behind = step.at - (world.clock.uptime - start)
            if behind > .zero { world.clock.advance(by: behind) }
            let socket = try sockets[step.connection] ?? ReplaySocket(port: backend.port)
            sockets[step.connection] = socket
            try socket.send(step.request)
            let received = await receive(step, socket)
            if let offset = Self.firstDifference(received, step.reply) {
                return ReplayReport(exchanges: index, difference: describe(index, step, received, offset))
            }
            if step.ending != "" { sockets[step.connection] = nil }
        }
        return ReplayReport(exchanges: repro.steps.count, difference: nil)
    }

    /// Reads what the recording says should come, and lets time pass where nothing does.
    private func receive(_ step: Repro.Step, _ socket: ReplaySocket) async -> [UInt8] {
        var received: [UInt8] = []
        var idle = 0
        while received.count < step.reply.count, idle < 2_000, !socket.hasEnded {
            let fresh = socket.receive(milliseconds: 1)
            received += fresh
            guard fresh.isEmpty else {
                idle = 0
                continue
            }
            idle += 1
            // Two quiet milliseconds: what is to come waits for the clock.
            if idle > 2 { world.clock.advanceToNextTimer() }
            await Task.yield()
        }
        // One more look for what should not have come.
        if !socket.hasEnded { received += socket.receive(milliseconds: step.reply.isEmpty ? 20 : 0) }
        return received
    }

    private static func firstDifference(_ left: [UInt8], _ right: [UInt8]) -> Int? {
        if let index = zip(left, right).enumerated().first(where: { $0.element.0 != $0.element.1 })?.offset {
            return index
        }
        return left.count == right.count ? nil : min(left.count, right.count)
    }

    private func describe(_ index: Int, _ step: Repro.Step, _ received: [UInt8], _ offset: Int) -> String {
        func context(_ bytes: [UInt8]) -> String {
            let range = max(0, offset - 40)..<max(max(0, offset - 40), min(bytes.count, offset + 40))
            return String(decoding: bytes[range], as: UTF8.self).replacing("\r\n", with: "⏎")
        }
        let line = String(decoding: step.request.prefix { $0 != 0x0D }, as: UTF8.self)
        return """
            exchange \(index + 1), \(Secrets.masked(target: line)): byte \(offset) of the reply differs
              recorded: …\(context(step.reply))…
                   now: …\(context(received))…
            """
    }
}

/// A socket to the backend in this process.
private final class ReplaySocket {
    private let descriptor: Int32
    private(set) var hasEnded = false

    init(port: Int) throws {
        #if canImport(Darwin)
            descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        unsafe inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        let result = unsafe withUnsafeBytes(of: &address) { raw in
            unsafe connect(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
        guard result == 0 else {
            throw ProblemType.internalError("The backend does not answer itself on port \(port).")
        }
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            #if canImport(Darwin)
                let flags: Int32 = 0
            #else
                let flags = Int32(MSG_NOSIGNAL)
            #endif
            let count = unsafe bytes.withUnsafeBytes { raw in
                unsafe systemSend(descriptor, raw.baseAddress.map { unsafe $0 + sent }, bytes.count - sent, flags)
            }
            guard count > 0 else {
                hasEnded = true
                return
            }
            sent += count
        }
    }

    func receive(milliseconds: Int32) -> [UInt8] {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&waiting, 1, milliseconds) > 0 else { return [] }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else {
            hasEnded = true
            return []
        }
        return Array(buffer[..<count])
    }
}

/// send(2); inside `ReplaySocket` the name is its own.
private func systemSend(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    unsafe send(descriptor, start, count, flags)
}
