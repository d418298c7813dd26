import Foundation
import Larder
import LarderHTTP
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderImages
@testable import LarderTransport

@Suite("Image retries", .oneMinute)
struct ImageRetryTests {
    @Test func `a client's image retries use the client's clock and random numbers`() async throws {
        let scene = CacheScene()
        let picture = PNGBuilder.picture(width: 24, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), 7) }
        let transport = ScriptedTransport { _, number throws(TransportError) in
            if number == 1 { return .text("", status: .serviceUnavailable) }
            return ScriptedTransport.Reply(fields: [.contentType: "image/png"], [.bytes(picture)])
        }
        var configuration = APIClient.Configuration(transport: transport)
        configuration.cache = scene.configuration()
        configuration.cache.storage = .memory
        configuration.services = .none
        let client = try await APIClient(
            server: "http://server",
            account: "ana",
            directory: scene.path,
            configuration
        )
        let clock = scene.clock
        let loading = Task { try await client.images.image(for: ImageRequest(url: "http://server/v1/images/a")) }
        try await clock.waitForSleepers()
        // The back-off of the picture is half of the maximum of a quarter of a second.
        #expect(clock.nextWakeUp == clock.uptime + .milliseconds(125))
        let moving = Task {
            while !Task.isCancelled {
                try await clock.waitForSleepers()
                guard let next = clock.nextWakeUp else { continue }
                clock.advance(by: next - clock.uptime)
            }
        }
        #expect(try await loading.value.width == 24)
        #expect(transport.requests.count == 2)
        // That of the host is half a second.
        #expect(clock.uptime >= MonotonicTime(nanoseconds: 500_000_000))
        moving.cancel()
        client.close()
    }
}
