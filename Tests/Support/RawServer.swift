import Glibc

/// A TCP server whose connections a test reads and writes itself.
package final class RawServer {
    package let port: Int
    private let listener: Int32

    package var url: String { "http://127.0.0.1:\(port)" }

    /// Listens on a free port of this machine.
    ///
    /// - Parameter receiveBufferBytes: the size of the receive buffers of its connections; nil lets the system choose.
    package init(receiveBufferBytes: Int32? = nil) throws {
        (listener, port) = try LoopbackSocket.bound(backlog: 16, receiveBufferBytes: receiveBufferBytes)
    }

    deinit { close(listener) }

    /// The next connection.
    package func next() async throws -> RawClient {
        guard await Readable.wait(listener) else { throw RawClient.Failure(reason: "cancelled before a connection") }
        return RawClient(descriptor: accept(listener, nil, nil))
    }
}
