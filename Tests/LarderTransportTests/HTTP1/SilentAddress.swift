import SDKTestSupport

@testable import LarderTransport

/// A local address that does not answer: its server never accepts, and when the queue is full, the system ignores further connections.
final class SilentAddress {
    private let server: WireServer
    private let queue: [Int32]
    let address: SocketCall.Address

    init() throws {
        server = try WireServer()
        let address = try Self.address(of: server)
        queue = try (0..<130).map { _ in try SocketCall.connect(address).get() }
        self.address = address
    }

    deinit { for descriptor in queue { SocketCall.shut(descriptor) } }

    var url: String { "http://127.0.0.1:\(server.port)/" }

    static func address(of server: WireServer) throws -> SocketCall.Address {
        try SocketCall.resolve("127.0.0.1", port: server.port, isNumeric: true).get()[0]
    }
}
