import LarderTesting
import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Socket connector", .oneMinute)
struct SocketConnectorTests {
    private let clock = ManualClock()
    private let loop = SocketLoop(isStepped: true)

    @Test func `addresses of both families alternate, beginning with the first one's`() {
        func list(_ families: [Int32]) -> [SocketCall.Address] {
            families.enumerated().map { SocketCall.Address(family: $1, bytes: [UInt8($0)]) }
        }
        let cases: [([Int32], [UInt8])] = [
            ([], []), ([6], [0]), ([6, 6, 6, 4], [0, 3, 1, 2]), ([4, 6, 6, 6], [0, 1, 2, 3]),
            ([6, 6, 4, 4, 4], [0, 2, 1, 3, 4]),
        ]
        for (families, order) in cases {
            #expect(SocketConnector.alternating(list(families)).flatMap(\.bytes) == order, "\(families)")
        }
    }

    /// A connector whose outcome is described as text.
    private func connector(
        _ addresses: [SocketCall.Address],
        _ outcome: Pending<String>
    ) -> SocketConnector {
        SocketConnector(
            addresses,
            host: "larder.test",
            deadline: clock.uptime + .seconds(10),
            clock: clock,
            loop: loop
        ) { found in
            switch found {
            case .success(let descriptor):
                SocketCall.shut(descriptor)
                outcome.finish("connected")
            case .failure(let failure): outcome.finish(failure.description)
            }
        }
    }

    @Test func `without an address, it fails in the first step`() async {
        let outcome = Pending<String>()
        #expect(connector([], outcome).start())
        _ = loop.step()
        #expect(await outcome.value(ifCancelled: "") == "'larder.test' has no address.")
        #expect(loop.step() == (false, nil))
    }

    @Test func `attempts that do not end are closed at the deadline, and it fails`() async throws {
        let silent = try SilentAddress()
        let outcome = Pending<String>()
        #expect(connector([silent.address, silent.address], outcome).start())
        _ = loop.step()
        clock.advance(by: .milliseconds(250))
        _ = loop.step()
        // No address is left: only the deadline is waited for.
        #expect(loop.step().timeLeft == .milliseconds(9_750))
        clock.advance(by: .milliseconds(9_750))
        _ = loop.step()
        #expect(await outcome.value(ifCancelled: "") == "'larder.test' did not accept the connection in time.")
        #expect(loop.step() == (false, nil))
        withExtendedLifetime(silent) {}
    }

    @Test func `a cancelled connector reports nothing and leaves the loop`() async throws {
        let silent = try SilentAddress()
        let outcome = Pending<String>()
        let cancelled = connector([silent.address], outcome)
        #expect(cancelled.start())
        _ = loop.step()
        cancelled.cancel()
        #expect(loop.step() == (false, nil))
        #expect(outcome.finish("nothing"))
        withExtendedLifetime(silent) {}
    }
}
