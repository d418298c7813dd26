import LarderTesting
import LarderTime
import Testing

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

/// A host whose first address does not answer and whose second one does, and a loop that the test steps.
struct HostWithSilentAddress {
    let server: WireServer
    let transport: SocketTransport
    private let silent: SilentAddress
    private let clock = ManualClock()
    private let loop = SocketLoop(isStepped: true)

    init() throws {
        silent = try SilentAddress()
        server = try WireServer()
        let addresses = [silent.address, try SilentAddress.address(of: server)]
        var configuration = SocketTransport.Configuration()
        configuration.proxies = .none
        transport = SocketTransport(
            configuration,
            clock: clock,
            resolver: HostResolver { _, _ in .success(addresses) },
            loop: loop
        )
    }

    /// Lets the delay of 250 ms after the first attempt pass, and steps the loop until the returned task is cancelled.
    func passAttemptDelay() async throws -> Task<Void, Never> {
        // The first attempt begins in the step after the lookup.
        while !loop.step().isActive, !Task.isCancelled { await Task.yield() }
        try #require(loop.step().timeLeft == .milliseconds(250))
        clock.advance(by: .milliseconds(249))
        try #require(loop.step().timeLeft == .milliseconds(1))
        clock.advance(by: .milliseconds(1))
        return Task { [loop, silent] in
            while !Task.isCancelled {
                _ = loop.step()
                await Task.yield()
            }
            withExtendedLifetime(silent) {}
        }
    }
}
