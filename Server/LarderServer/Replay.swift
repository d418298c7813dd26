import LarderBackend
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

/// The result of a replay.
public struct ReplayReport: Sendable, CustomStringConvertible {
    /// The number of compared exchanges.
    public let exchanges: Int
    /// A description of the first difference; nil if every byte was the same.
    public let difference: String?
    /// Whether every exchange that was complete when the recording was saved is part of it; false if the recording was full.
    public let isComplete: Bool

    /// The report as text.
    public var description: String {
        let result = difference ?? "\(exchanges) exchanges, every byte the same"
        return isComplete ? result : result + "; the recording is incomplete, because it was full"
    }
}

extension MockBackend {
    /// Replays a recording on a backend of its own and compares every byte of every reply.
    ///
    /// The clock only advances as the recording and its faults require, so a replay takes no longer than its work.
    ///
    /// - Parameters:
    ///   - json: the file from `GET /_larder/recording`.
    ///   - fixtures: the directory of the images, if replies with images are part of it.
    public static func replay(_ json: [UInt8], fixtures: String? = nil) async throws -> ReplayReport {
        let file = try RecordingFile(json)
        let image = try DatabaseImage(bytes: file.snapshot)
        let images = try fixtures.map { try FixtureReader.images($0) } ?? .empty
        var configuration = Configuration()
        configuration.seed = file.seed
        let template = WorldTemplate(image: image, images: images)
        let backend = try start(resuming: template, worldID: file.world, configuration)
        let report: ReplayReport
        do {
            report = try await Replay(file, backend, try backend.plane.worlds.world(file.world)).run()
        } catch {
            await backend.stop()
            throw error
        }
        await backend.stop()
        return report
    }
}

/// A replay, step by step.
private struct Replay {
    let file: RecordingFile
    let backend: MockBackend
    let world: World

    init(_ file: RecordingFile, _ backend: MockBackend, _ world: World) {
        self.file = file
        self.backend = backend
        self.world = world
    }

    func run() async throws -> ReplayReport {
        world.clock.freeze(at: file.time)
        world.control.change { settings in
            settings.dialect = file.dialect
            settings.drift = file.drift
            settings.skews = file.skews
        }
        _ = try backend.plane.setFaults(file.faults, in: world)
        try backend.plane.record(world, secretSeed: file.secretSeed)
        let start = world.clock.uptime
        var sockets: [Int: ReplaySocket] = [:]
        for (index, step) in file.steps.enumerated() {
            let behind = step.at - (world.clock.uptime - start)
            if behind > .zero { world.clock.advance(by: behind) }
            let socket = try sockets[step.connection] ?? ReplaySocket(port: backend.port)
            sockets[step.connection] = socket
            try socket.send(step.request)
            let received = await receive(step, socket)
            if let offset = Self.firstDifference(received, step.reply) {
                return ReplayReport(
                    exchanges: index,
                    difference: describe(index, step, received, offset),
                    isComplete: file.isComplete
                )
            }
            if step.ending != "" { sockets[step.connection] = nil }
        }
        return ReplayReport(exchanges: file.steps.count, difference: nil, isComplete: file.isComplete)
    }

    /// Reads the expected number of bytes, and advances the clock while none arrive.
    private func receive(_ step: RecordingFile.Step, _ socket: ReplaySocket) async -> [UInt8] {
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
            // After two quiet milliseconds the reply waits for the clock.
            if idle > 2 { world.clock.advanceToNextTimer() }
            await Task.yield()
        }
        // One more read detects excess bytes.
        if !socket.hasEnded { received += socket.receive(milliseconds: step.reply.isEmpty ? 20 : 0) }
        return received
    }

    private static func firstDifference(_ left: [UInt8], _ right: [UInt8]) -> Int? {
        if let index = zip(left, right).enumerated().first(where: { $0.element.0 != $0.element.1 })?.offset {
            return index
        }
        return left.count == right.count ? nil : min(left.count, right.count)
    }

    private func describe(_ index: Int, _ step: RecordingFile.Step, _ received: [UInt8], _ offset: Int) -> String {
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

/// A client socket to the backend in this process.
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
            throw ProblemType.internalError("The backend does not answer on its own port \(port).")
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

/// send(2), which `ReplaySocket` shadows.
private func systemSend(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    unsafe send(descriptor, start, count, flags)
}
