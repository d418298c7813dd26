import LarderTime
import SimulationRuntime

/// How a device is connected at present.
struct Link: Sendable, Equatable {
    /// The delay of each piece of bytes, in milliseconds.
    var delay = 5...15
    /// The probability that a piece is late by up to three seconds, as after lost packets.
    var loss = 0.0
    /// The probability that a connection is reset instead of passing on a piece of a reply.
    var cut = 0.0
    /// The probability that a new connection passes nothing on in either direction.
    var halfOpen = 0.0
    /// Connections are refused at once.
    var isRefused = false
    /// Nothing is passed on, and nobody is told.
    var isBlackHole = false

    static let good = Link()
}

/// The network between devices and the server: real bytes, late, lost and cut as the links say.
///
/// A connection is two socket pairs of which the network has one end each.
struct Network {
    enum Direction: Int { case up, down }

    private enum Piece {
        case bytes([UInt8])
        case end
        case reset
    }

    private struct Pipe {
        var pieces: [(due: Int64, piece: Piece)] = []
        var last: Int64 = 0
        /// Whether the sender has ended.
        var isOver = false
    }

    private struct Connection {
        let number: Int
        let device: Int
        let client: Int32
        /// The end at the server; nil before the connection has arrived there.
        var server: Int32?
        var arrives: Int64
        var up = Pipe()
        var down = Pipe()
        /// Whether it passes nothing on.
        var isDead = false
        var isClosed = false
        /// Whether the process at the client's end has ended.
        var isOrphan = false
        /// What happens to the handshake of TLS; nil: nothing does.
        var handshakeFault: HandshakeFault?
    }

    /// The end of a connection in the midst of the handshake of TLS.
    private struct HandshakeFault {
        /// The pieces that are passed on before, in both directions, and the bytes of the next one.
        var pieces: Int
        var bytes: Int
        /// Whether it is reset; otherwise nothing more is passed on.
        var isCut: Bool

        init(_ random: inout SeededGenerator) {
            pieces = random.uniform(in: 0..<5)
            bytes = random.uniform(in: 0..<200)
            isCut = random.unit() < 0.5
        }
    }

    private var connections: [Connection] = []
    private var lastNumber = 0
    private(set) var bytesCarried = 0
    private(set) var cuts = 0
    /// The connections that have ended in the midst of the handshake.
    private(set) var cutHandshakes = 0
    private(set) var links: [Link]
    /// Whether some connections end in the midst of the handshake of TLS.
    var disturbsHandshakes = false

    init(devices: Int) { links = Array(repeating: .good, count: devices) }

    /// The server's address for a device: the network knows the device by it.
    static func address(of device: Int) -> String { "127.0.0.\(device + 1)" }

    /// Sets the state of a device's network.
    mutating func set(_ link: Link, of device: Int) {
        links[device] = link
        sim_refuse(Int32(device + 1), link.isRefused)
    }

    /// The open connections of a device, described.
    func connections(of device: Int) -> [String] {
        connections.filter { $0.device == device }.map { connection in
            "#\(connection.number)" + (connection.server == nil ? ", not arrived" : "")
                + (connection.isOrphan ? ", whose process has ended" : "") + (connection.isDead ? ", dead" : "")
        }
    }

    /// The number of those that the device's process has not closed and that pass something on.
    func usedConnections(of device: Int) -> Int {
        connections.count { $0.device == device && !$0.isDead && !$0.up.isOver }
    }

    /// Takes over the connections that have begun; true if there are any.
    private mutating func begin(now: Int64, _ random: inout SeededGenerator) -> Bool {
        var count = 0
        while true {
            var host: Int32 = 0
            let end = unsafe sim_take_connection(&host)
            guard end >= 0 else { return count > 0 }
            lastNumber += 1
            count += 1
            let device = Int(host) - 1
            let link = links[device]
            var connection = Connection(
                number: lastNumber,
                device: device,
                client: end,
                arrives: now + Self.delay(link, &random)
            )
            connection.isDead = link.isBlackHole || random.unit() < link.halfOpen
            if disturbsHandshakes, random.unit() < 0.1 { connection.handshakeFault = HandshakeFault(&random) }
            connections.append(connection)
        }
    }

    /// Ends all connections of a device as the death of its process does.
    ///
    /// - Parameter keepsSent: whether what the process has sent still arrives, as from a kernel that outlives it.
    mutating func close(of device: Int, keepsSent: Bool, now: Int64, _ random: inout SeededGenerator) {
        for index in connections.indices where connections[index].device == device {
            if keepsSent { _ = collect(index, .up, now, &random) }
            let connection = connections[index]
            guard keepsSent, !connection.isDead, !connection.isClosed, !connection.isOrphan, !connection.up.isOver,
                let last = connection.up.pieces.last
            else {
                if !connection.isOrphan { shut(index, resets: true) }
                continue
            }
            sim_reset(connection.client)
            connections[index].isOrphan = true
            connections[index].up.isOver = true
            // The server has time to read what comes before.
            connections[index].up.pieces.append((last.due + 1_000_000_000, .reset))
        }
        connections.removeAll { $0.isClosed }
    }

    /// A device whose network has changed: its open connections pass nothing on any more.
    mutating func abandon(of device: Int) {
        for index in connections.indices where connections[index].device == device { connections[index].isDead = true }
    }

    /// The time of the next event after now; nil if there is none. What is due and waits, waits for a reader.
    func next(after now: Int64) -> Int64? {
        var next: Int64?
        for connection in connections where !connection.isDead && !links[connection.device].isBlackHole {
            let first =
                connection.server == nil
                ? connection.arrives
                : min(connection.up.pieces.first?.due ?? .max, connection.down.pieces.first?.due ?? .max)
            if first < .max, first > now { next = min(next ?? first, first) }
        }
        return next
    }

    /// Moves bytes whose time has come; true if something happened.
    mutating func pump(now: Int64, _ random: inout SeededGenerator, _ trace: inout Trace) -> Bool {
        var isActive = begin(now: now, &random)
        for index in connections.indices where !connections[index].isClosed {
            if collect(index, .up, now, &random) { isActive = true }
            if connections[index].server == nil {
                // Neither end hears of it any more.
                if connections[index].isDead, connections[index].isOrphan { shut(index, resets: true) }
                guard !connections[index].isClosed, !connections[index].isDead, now >= connections[index].arrives else {
                    continue
                }
                isActive = true
                let end = sim_arrive()
                trace.add(connections[index].number)
                guard end >= 0 else {
                    shut(index, resets: true)
                    continue
                }
                connections[index].server = end
            }
            if collect(index, .down, now, &random) { isActive = true }
            if deliver(index, .up, now, &trace) { isActive = true }
            if deliver(index, .down, now, &trace) { isActive = true }
        }
        connections.removeAll { $0.isClosed }
        return isActive
    }

    private static func delay(_ link: Link, _ random: inout SeededGenerator) -> Int64 {
        let milliseconds = random.uniform(in: link.delay.lowerBound..<(link.delay.upperBound + 1))
        let late = random.unit() < link.loss ? random.uniform(in: 200..<3_000) : 0
        return Int64(milliseconds + late) * 1_000_000
    }

    /// Reads what one side has sent.
    private mutating func collect(
        _ index: Int,
        _ direction: Direction,
        _ now: Int64,
        _ random: inout SeededGenerator
    ) -> Bool {
        let connection = connections[index]
        guard let end = direction == .up ? connection.client : connection.server, !connection.isClosed else {
            return false
        }
        if connection.isOrphan, direction == .up { return false }
        var pipe = direction == .up ? connection.up : connection.down
        guard !pipe.isOver else { return false }
        var isActive = false
        let link = links[connection.device]
        while !pipe.isOver {
            var count = 0
            let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, initialized in
                count = unsafe sim_read(end, buffer.baseAddress, 1 << 16)
                initialized = max(0, count)
            }
            guard count >= 0 else { break }
            isActive = true
            var piece = Piece.bytes(bytes)
            if count == 0 {
                piece = sim_was_reset(end) ? .reset : .end
                pipe.isOver = true
            } else if direction == .down, random.unit() < link.cut {
                piece = .reset
                pipe.isOver = true
                cuts += 1
            }
            // Bytes of one connection stay in order.
            let due = max(pipe.last, now + Self.delay(link, &random))
            pipe.last = due
            pipe.pieces.append((due, piece))
        }
        if direction == .up { connections[index].up = pipe } else { connections[index].down = pipe }
        // A process that has closed a connection that passes nothing on: nobody else will hear of it.
        if connection.isDead, direction == .up, pipe.isOver { shut(index, resets: true) }
        return isActive
    }

    private mutating func deliver(_ index: Int, _ direction: Direction, _ now: Int64, _ trace: inout Trace) -> Bool {
        let connection = connections[index]
        if connection.isOrphan, direction == .down, !connection.isClosed {
            // Nobody reads it, and nobody else answers the server's end.
            connections[index].down.pieces = []
            if connection.down.isOver { shut(index, resets: true) }
            return connections[index].isClosed
        }
        guard !connection.isDead, !connection.isClosed, !links[connection.device].isBlackHole else { return false }
        guard let end = direction == .up ? connection.server : connection.client else { return false }
        var pipe = direction == .up ? connection.up : connection.down
        var isActive = false
        while let (due, piece) = pipe.pieces.first, due <= now {
            trace.add(due)
            trace.add(connection.number << 1 | direction.rawValue)
            switch piece {
            case .bytes(var bytes):
                if let fault = connections[index].handshakeFault, fault.pieces == 0 {
                    guard fault.bytes > 0 else {
                        breakHandshake(index, fault)
                        return true
                    }
                    bytes = Array(bytes.prefix(fault.bytes))
                }
                let written = unsafe bytes.withUnsafeBytes { unsafe sim_write(end, $0.baseAddress, $0.count) }
                // Without room the rest waits for the reader.
                guard written > 0 else {
                    if direction == .up { connections[index].up = pipe } else { connections[index].down = pipe }
                    return isActive
                }
                trace.add(bytes.prefix(written))
                if trace.keepsLines { describe(bytes.prefix(written), connection.number, direction, now, &trace) }
                bytesCarried += written
                isActive = true
                if let fault = connections[index].handshakeFault {
                    guard fault.pieces > 0 else {
                        breakHandshake(index, fault)
                        return true
                    }
                    connections[index].handshakeFault?.pieces -= 1
                }
                if written < bytes.count {
                    pipe.pieces[0].piece = .bytes(Array(bytes[written...]))
                } else {
                    pipe.pieces.removeFirst()
                }
            case .end:
                pipe.pieces.removeFirst()
                sim_finish(end)
                isActive = true
            case .reset:
                shut(index, resets: true)
                return true
            }
        }
        if direction == .up { connections[index].up = pipe } else { connections[index].down = pipe }
        let (up, down) = (connections[index].up, connections[index].down)
        if up.isOver, down.isOver, up.pieces.isEmpty, down.pieces.isEmpty { shut(index, resets: false) }
        return isActive
    }

    /// Ends a connection in the midst of the handshake.
    private mutating func breakHandshake(_ index: Int, _ fault: HandshakeFault) {
        cutHandshakes += 1
        if fault.isCut { shut(index, resets: true) } else { connections[index].isDead = true }
    }

    /// A line for the reader: the first line of a message.
    private func describe(
        _ bytes: ArraySlice<UInt8>,
        _ number: Int,
        _ direction: Direction,
        _ now: Int64,
        _ trace: inout Trace
    ) {
        let first = String(decoding: bytes.prefix { $0 != 13 && $0 != 10 }.prefix(120), as: UTF8.self)
        let printable = first.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 0xFFFD } ? first : "(binary)"
        trace.remark(
            "    \(now / 1_000_000) #\(number) \(direction == .up ? ">" : "<") \(bytes.count) bytes \(printable)"
        )
    }

    private mutating func shut(_ index: Int, resets: Bool) {
        guard !connections[index].isClosed else { return }
        connections[index].isClosed = true
        let client = connections[index].isOrphan ? -1 : connections[index].client
        for end in [client, connections[index].server ?? -1] where end >= 0 {
            if resets { sim_reset(end) } else { sim_close(end) }
        }
    }
}
