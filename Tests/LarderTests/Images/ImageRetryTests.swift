import Foundation
import LarderHTTP
import LarderTesting
import LarderTime
import TestSupport
import Testing

@testable import Larder

@Suite("Image downloads that are tried again", .oneMinute)
struct ImageRetryTests {
    @Test func `a client's images wait by the client's clock and are spread by its random numbers`() async throws {
        let scene = CacheScene()
        let picture = PNGBuilder.picture(width: 24, height: 16) { (UInt8($0 * 10), UInt8($1 * 10), 7) }
        let transport = ScriptedTransport { _, number throws(TransportError) in
            if number == 1 { return .text("", status: .serviceUnavailable) }
            return ScriptedReply(fields: [.contentType: "image/png"], [.bytes(picture)])
        }
        var configuration = LarderClient.Configuration(transport: transport)
        configuration.cache = scene.configuration()
        configuration.cache.directory = nil
        configuration.followsLive = false
        configuration.upkeep = .none
        let client = try await LarderClient(
            server: "http://server",
            account: "ana",
            directory: scene.path,
            configuration
        )
        let clock = scene.clock
        let loading = Task { try await client.images.image(for: ImageRequest(url: "http://server/v1/images/a")) }
        let moving = Task {
            try await clock.waitForSleepers()
            // A quarter of a second, of which half is certain and half of the rest is chance.
            #expect(clock.nextWakeUp == clock.uptime + .microseconds(187_500))
            clock.advance(by: .microseconds(187_500))
        }
        #expect(try await loading.value.width == 24)
        #expect(clock.uptime.nanoseconds == 187_500_000)
        moving.cancel()
        client.close()
    }
}
