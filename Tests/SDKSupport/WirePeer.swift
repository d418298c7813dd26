import Glibc
import LarderHTTPWire
package import LarderTLS
import LarderTime
import LarderTransport
import Synchronization

/// A TCP server that sends arbitrary bytes, for tests of failures below HTTP.
package final class WireServer: Sendable {
    package struct Failure: Error {
        package let reason: String
    }

    private let descriptor: Int32
    package let port: Int

    /// Listens on a free port of this machine.
    ///
    /// - Parameter receiveBufferBytes: the fixed size of the receive buffer of each connection; nil: the system's default, which may
    ///   grow to many megabytes.
    package init(receiveBufferBytes: Int32? = nil) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.descriptor = descriptor
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        unsafe inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        let bound = unsafe withUnsafeBytes(of: &address) { raw in
            unsafe bind(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(raw.count))
        }
        // Accepted connections inherit the size.
        if var size = receiveBufferBytes {
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        guard bound == 0, listen(descriptor, 64) == 0 else { throw Failure(reason: "no free port") }
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = unsafe withUnsafeMutableBytes(of: &address) { raw in
            unsafe getsockname(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, &size)
        }
        port = Int(in_port_t(bigEndian: address.sin_port))
    }

    deinit { close(descriptor) }

    /// Waits for the next connection, and for the end of its TLS handshake.
    ///
    /// - Throws: the `TLSError` of a handshake that failed.
    package func accept(_ tls: TLSServer) async throws -> WirePeer {
        let peer = try await accept()
        try await peer.secure(tls)
        return peer
    }

    /// Waits for the next connection.
    package func accept() async throws -> WirePeer {
        guard await wait(descriptor, for: POLLIN) else { throw Failure(reason: "no connection was accepted") }
        let peer = Glibc.accept(descriptor, nil, nil)
        guard peer >= 0 else { throw Failure(reason: "accept failed") }
        return WirePeer(peer)
    }
}

/// One connection of a `WireServer`. Used by one task at a time.
package final class WirePeer: Sendable {
    /// A received frame, unmasked.
    package struct Frame: Sendable, Hashable {
        package let isFinal: Bool
        package let opcode: UInt8
        package let mask: [UInt8]?
        package let payload: [UInt8]

        package var text: String { String(decoding: payload, as: UTF8.self) }
    }

    private struct State {
        var buffer: [UInt8] = []
        var isClosed = false
        var tls: TLSSession?
        /// Why the TLS session has ended.
        var failure: TLSError?
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { finish() }

    package func send(_ text: String) async { await send(Array(text.utf8)) }

    /// Sends bytes. The rest is dropped if the client has closed or the task is cancelled.
    ///
    /// Never blocks the thread, because the reader may need it.
    package func send(_ bytes: [UInt8]) async {
        let coded = state.withLock { state -> [UInt8]? in
            guard let tls = state.tls else { return bytes }
            do throws(TLSError) { try tls.send(bytes.span) } catch {
                state.failure = error
                return nil
            }
            return tls.takeOutput()
        }
        if let coded { await write(coded) }
    }

    /// Performs the server's side of a TLS handshake.
    package func secure(_ server: TLSServer) async throws {
        try state.withLock { $0.tls = try server.session() }
        while !state.withLock({ $0.tls?.isEstablished == true }) {
            let isOpen = await fill()
            if let failure = state.withLock({ $0.failure }) { throw failure }
            guard isOpen else { throw WireServer.Failure(reason: "the client closed in the TLS handshake") }
        }
    }

    /// Whether the client has resumed an earlier TLS session.
    package var isResumed: Bool { state.withLock { $0.tls?.isResumed == true } }

    /// The host that the client has named in the TLS handshake.
    package var requestedHost: String? { state.withLock { $0.tls?.requestedHost } }

    private func write(_ bytes: [UInt8]) async {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe trySend($0) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else {
                guard count < 0, errno == EAGAIN || errno == EINTR, await wait(descriptor, for: POLLOUT) else { return }
            }
        }
    }

    /// Sends as many bytes as the socket accepts without waiting. Returns their number.
    package func sendNow(_ bytes: [UInt8]) -> Int { unsafe max(0, bytes.withUnsafeBytes { unsafe trySend($0) }) }

    private func trySend(_ bytes: UnsafeRawBufferPointer) -> Int {
        unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    }

    /// Reads exactly `count` bytes.
    package func read(count: Int) async throws -> [UInt8] {
        while state.withLock({ $0.buffer.count }) < count {
            guard await fill() else { throw WireServer.Failure(reason: "the client closed") }
        }
        return state.withLock { state in
            defer { state.buffer.removeFirst(count) }
            return Array(state.buffer[..<count])
        }
    }

    /// Reads the head of a request, including the empty line.
    package func readHead() async throws -> String {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) { head += try await read(count: 1) }
        return String(decoding: head, as: UTF8.self)
    }

    /// Waits for the client to close its side, and discards all bytes before. Returns false if the task is cancelled first.
    package func isEnded() async -> Bool {
        while await fill() { state.withLock { $0.buffer = [] } }
        return state.withLock { $0.isClosed }
    }

    /// Closes the connection normally.
    ///
    /// - Parameter cutsTLS: whether a TLS session is not ended before.
    package func finish(cutsTLS: Bool = false) {
        guard markClosed() else { return }
        let last = state.withLock { state -> [UInt8] in
            guard let tls = state.tls, !cutsTLS else { return [] }
            tls.end()
            return tls.takeOutput()
        }
        _ = sendNow(last)
        close(descriptor)
    }

    /// Resets the connection (RST).
    package func reset() {
        guard markClosed() else { return }
        var choice = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &choice, socklen_t(MemoryLayout<linger>.size))
        close(descriptor)
    }

    private let isShut = Mutex(false)

    private func markClosed() -> Bool {
        isShut.withLock { isShut in
            defer { isShut = true }
            return !isShut
        }
    }

    private func fill() async -> Bool {
        guard !isShut.withLock({ $0 }), await wait(descriptor, for: POLLIN) else { return false }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
        let (isOpen, answer) = state.withLock { state -> (Bool, [UInt8]) in
            guard count > 0 else {
                state.isClosed = true
                return (false, [])
            }
            guard let tls = state.tls else {
                state.buffer += chunk[..<count]
                return (true, [])
            }
            var plain: [UInt8] = []
            do throws(TLSError) { try tls.receive(chunk.span.extracting(0..<count), into: &plain) } catch {
                state.failure = error
            }
            state.buffer += plain
            return (state.failure == nil, tls.takeOutput())
        }
        if !answer.isEmpty { await write(answer) }
        return isOpen
    }

    // MARK: WebSocket

    /// Reads the handshake request and accepts it.
    ///
    /// - Parameters:
    ///   - lines: further lines of the reply's head, each with its CR LF.
    ///   - rest: bytes to be sent directly after the head.
    @discardableResult package func acceptWebSocket(lines: String = "", rest: [UInt8] = []) async throws -> String {
        let head = try await readHead()
        await send(Array(Self.acceptance(to: head, lines: lines).utf8) + rest)
        return head
    }

    /// The reply that accepts a handshake.
    package static func acceptance(to head: String, lines: String = "") -> String {
        let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-key:") }
        let key = line?.split(separator: ":").last.map { $0.filter { $0 != " " } } ?? ""
        return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(WebSocketHandshake.accept(forKey: String(key)))\r\n\(lines)\r\n"
    }

    /// An unmasked frame.
    package static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        switch payload.count {
        case 0...125: bytes.append(UInt8(payload.count))
        case 126...65_535: bytes += [126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        default:
            bytes.append(127)
            bytes += stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: payload.count >> $0) }
        }
        return bytes + payload
    }

    /// Sends an unmasked frame.
    package func sendFrame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) async {
        await send(Self.frame(opcode, payload, isFinal: isFinal))
    }

    /// Sends a close frame.
    package func sendClose(_ code: UInt16, _ reason: String = "") async {
        await sendFrame(8, [UInt8(code >> 8), UInt8(code & 255)] + Array(reason.utf8))
    }

    /// Reads the next frame of the client.
    package func readFrame() async throws -> Frame {
        let head = try await read(count: 2)
        var length = Int(head[1] & 0x7F)
        if length >= 126 {
            length = try await read(count: length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) }
        }
        let mask = head[1] & 0x80 != 0 ? try await read(count: 4) : nil
        var payload = try await read(count: length)
        if let mask { for index in payload.indices { payload[index] ^= mask[index & 3] } }
        return Frame(isFinal: head[0] & 0x80 != 0, opcode: head[0] & 0x0F, mask: mask, payload: payload)
    }
}

/// Waits for events of a descriptor. Returns false if the task is cancelled first.
private func wait(_ descriptor: Int32, for events: Int32) async -> Bool {
    var waiting = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    if unsafe poll(&waiting, 1, 0) > 0 { return !Task.isCancelled }
    let waiter = DescriptorWaiter(descriptor, for: events)
    guard SocketLoop.shared.add(waiter) else { return false }
    return await waiter.isReady.value(ifCancelled: false) {
        waiter.end()
        SocketLoop.shared.wake()
    }
}

/// One wait for one descriptor in the loop of the process's sockets.
private final class DescriptorWaiter: SocketHandler {
    let isReady = Pending<Bool>()
    private let awaited: Mutex<(descriptor: Int32, events: Int32)?>

    init(_ descriptor: Int32, for events: Int32) { awaited = Mutex((descriptor, events)) }

    var interest: SocketInterest? {
        awaited.withLock { awaited in
            awaited.map {
                SocketInterest(descriptor: $0.descriptor, reads: $0.events == POLLIN, writes: $0.events == POLLOUT)
            }
        }
    }

    func end() { awaited.withLock { $0 = nil } }

    func ready() {
        end()
        isReady.finish(true)
    }

    func deadlineReached() {}
}
