import Glibc

/// A raw reply.
package struct RawReply: Sendable {
    package let status: Int
    package let head: String
    package let body: [UInt8]

    package init(status: Int, head: String, body: [UInt8]) {
        self.status = status
        self.head = head
        self.body = body
    }

    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The value of the first field line with a name.
    package func field(_ name: String) -> String? {
        for line in head.split(separator: "\r\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2, parts[0].lowercased() == name.lowercased() {
                return String(parts[1].drop { $0 == " " })
            }
        }
        return nil
    }
}

/// A TCP client that sends arbitrary bytes and reads HTTP replies.
package final class RawClient {
    package struct Failure: Error {
        package let reason: String

        package init(reason: String) { self.reason = reason }
    }

    package let descriptor: Int32
    private var buffer: [UInt8] = []

    /// Connects to a port of this machine.
    package init(port: Int) throws { descriptor = try LoopbackSocket.connected(to: port) }

    /// Takes over a connected socket.
    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    package func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// Sends bytes. Reads while the send buffer is full, so that two sending peers cannot deadlock.
    package func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
            let count = unsafe bytes.withUnsafeBytes { raw in
                unsafe Self.send(descriptor, UnsafeRawBufferPointer(rebasing: raw[sent...]), flags)
            }
            if count > 0 {
                sent += count
            } else {
                guard errno == EAGAIN || errno == EINTR, waitToSend() else {
                    throw Failure(reason: "the peer takes no more")
                }
            }
        }
    }

    /// Waits until more can be sent, and reads in the meantime. Returns false after about a minute, or if the task is cancelled. Blocks
    /// its thread.
    private func waitToSend() -> Bool {
        var events = Int16(POLLIN | POLLOUT)
        for _ in 0..<600 where !Task.isCancelled {
            var waiting = pollfd(fd: descriptor, events: events, revents: 0)
            guard unsafe poll(&waiting, 1, 100) > 0 else { continue }
            // After the end of the input the rest can still be sent.
            if waiting.revents & Int16(POLLIN) != 0, !receive() { events = Int16(POLLOUT) }
            if waiting.revents & ~Int16(POLLIN) != 0 { return true }
        }
        return false
    }

    private static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32) -> Int {
        unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, flags)
    }

    /// Resets the connection (RST) when this client is released.
    package func resetsAtEnd() {
        var choice = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &choice, socklen_t(MemoryLayout<linger>.size))
    }

    /// Shuts down the sending side.
    package func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Whether the peer has closed, after all input was read.
    package func isClosedByPeer() async -> Bool {
        guard buffer.isEmpty else { return false }
        return await !fill()
    }

    /// Reads up to and including a mark.
    package func read(until mark: String) async throws -> [UInt8] {
        let wanted = Array(mark.utf8)
        while true {
            if let end = Self.end(of: wanted, in: buffer) {
                defer { buffer.removeFirst(end) }
                return Array(buffer[..<end])
            }
            guard await fill() else {
                throw Failure(reason: "closed before '\(mark)'; had \(String(decoding: buffer, as: UTF8.self))")
            }
        }
    }

    /// Reads exactly `count` bytes.
    package func read(count: Int) async throws -> [UInt8] {
        while buffer.count < count {
            guard await fill() else { throw Failure(reason: "closed after \(buffer.count) of \(count) bytes") }
        }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }

    /// Reads one reply by its framing.
    ///
    /// - Parameter isHead: whether the reply is to a HEAD request and therefore has no body.
    package func reply(isHead: Bool = false) async throws -> RawReply {
        let head = String(decoding: try await read(until: "\r\n\r\n"), as: UTF8.self)
        guard let status = Int(head.dropFirst(9).prefix(3)) else { throw Failure(reason: "no status in \(head)") }
        let draft = RawReply(status: status, head: head, body: [])
        var body: [UInt8] = []
        if !isHead, status >= 200, status != 204, status != 304 {
            if let length = draft.field("Content-Length").flatMap({ Int($0) }) {
                body = try await read(count: length)
            } else if draft.field("Transfer-Encoding") == nil {
                while await fill() {}
                body = buffer
                buffer = []
            }
        }
        return RawReply(status: status, head: head, body: body)
    }

    /// The end of a connection.
    package enum Ending: Sendable {
        case closed
        case reset
        /// The task was cancelled first.
        case open
    }

    /// Reads until the connection ends.
    package func readToEnd() async -> (bytes: [UInt8], ending: Ending) {
        while await fill() {}
        defer { buffer = [] }
        return (buffer, ending)
    }

    /// Takes the bytes that have arrived.
    package func takeAvailable() -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while unsafe poll(&waiting, 1, 0) > 0 {
            let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            buffer.append(contentsOf: chunk[..<count])
        }
        defer { buffer = [] }
        return buffer
    }

    /// Whether input or the end of the connection is available without waiting.
    package var hasNews: Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe !buffer.isEmpty || poll(&waiting, 1, 0) > 0
    }

    private var ending = Ending.open

    /// Reads available input, or waits for it. Returns false if the peer has closed or the task is cancelled.
    private func fill() async -> Bool { await Readable.wait(descriptor) ? receive() : false }

    /// Reads available input. Returns false at the end of the connection.
    private func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(descriptor, &chunk, chunk.count, 0)
        guard count > 0 else {
            ending = count == 0 ? .closed : .reset
            return false
        }
        buffer.append(contentsOf: chunk[..<count])
        return true
    }

    private static func end(of mark: [UInt8], in bytes: [UInt8]) -> Int? {
        guard bytes.count >= mark.count else { return nil }
        for start in 0...(bytes.count - mark.count) where bytes[start] == mark[0] {
            if bytes[start..<(start + mark.count)].elementsEqual(mark) { return start + mark.count }
        }
        return nil
    }
}
