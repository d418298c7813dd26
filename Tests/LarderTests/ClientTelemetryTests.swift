import LarderDevice
import LarderHTTP
import LarderImages
import LarderResources
import LarderTelemetry
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import Larder

@Suite("Client: telemetry", .oneMinute)
struct ClientTelemetryTests {
    @Test func `with the flag off, events are delivered and not counted`() async throws {
        let directory = try ScratchDirectory()
        let flags = FeatureFlags()
        try flags.setOverride(false, for: .telemetryTotals)
        var configuration = APIClient.Configuration(transport: ScriptedTransport(script: []))
        configuration.services = .none
        configuration.services.telemetry = .own
        configuration.services.flags = .given(flags)
        let client = try await APIClient(
            server: "http://h",
            account: "a",
            directory: directory.path,
            configuration
        )
        let before = client.telemetry.totals.events
        let events = client.telemetry.events()
        client.telemetry.record(.merged(feature: "feed"))
        #expect(events.takeAvailable().map(\.kind) == [.merged(feature: "feed")])
        #expect(client.telemetry.totals.events == before && client.telemetry.totals.all.merged == 0)
        client.close()
    }

    @Test func `events have a session and the app's version, and a memory warning has the figures before the reaction`()
        async throws
    {
        let directory = try ScratchDirectory()
        let gate = TransportGate()
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            let fields: Fields = [.contentType: "application/json"]
            return request.url.hasSuffix("/slow")
                ? .text("1", fields: fields).held(by: gate)
                : .text("\"" + String(repeating: "x", count: 5_000) + "\"", fields: fields)
        }
        let memory = MemoryGuard.ManualSource()
        var configuration = APIClient.Configuration(transport: transport)
        configuration.services = .none
        configuration.services.telemetry = .own
        configuration.services.network = .given(
            NetworkMonitor(source: NetworkMonitor.ManualSource(), configuration: .init(seed: 1), clock: ManualClock())
        )
        configuration.services.memory = .own
        configuration.services.memorySource = memory
        configuration.services.appVersion = "3.4.1"
        let client = try await APIClient(
            server: "http://h",
            account: "a",
            directory: directory.path,
            configuration
        )
        let labels = client.telemetry.labels
        #expect(labels.appVersion == "3.4.1" && !labels.session.isEmpty)
        let events = client.telemetry.events()
        let source = client.source
        let text = Resource<String>("text") { context in try await source.fetch("/text", context: context) }
        #expect(try await client.cache.value(text).count == 5_000)
        let slow = Task { try await source.send(TransportRequest(url: "http://h/slow")) }
        await gate.waitForHeld()
        memory.signal(.critical, cause: "test")
        let warnings = client.telemetry.totals.memoryWarnings
        #expect(warnings.count == 1 && warnings.last.cost > 1_000 && warnings.last.requests == 1, "\(warnings)")
        gate.open()
        _ = try await slow.value
        client.close()
        var first = events.makeAsyncIterator()
        #expect(await first.next(isolation: nil)?.labels == labels)
        #expect(client.telemetry.totals.versions["3.4.1"]?.requests == 2)
    }
    @Test
    func `pictures that are missing or of no format count as failed for the version, and one not stored does not`()
        async throws
    {
        let directory = try ScratchDirectory()
        let transport = ScriptedTransport { request, _ in
            request.url.hasSuffix("/missing")
                ? .text("", status: .notFound) : .text("not a picture", fields: [.contentType: "image/png"])
        }
        var configuration = APIClient.Configuration(transport: transport)
        configuration.services = .none
        configuration.services.telemetry = .own
        configuration.services.appVersion = "3.4.1"
        let client = try await APIClient(
            server: "http://h",
            account: "a",
            directory: directory.path,
            configuration
        )
        for request in [
            ImageRequest(url: "http://h/missing"), ImageRequest(url: "http://h/text"),
            ImageRequest(url: "http://h/stored", cache: .onlyCached),
        ] {
            await #expect(throws: ImageError.self) { try await client.images.image(for: request) }
        }
        let totals = try #require(client.telemetry.totals.versions["3.4.1"])
        #expect(totals.images == 0 && totals.imagesFailed == 2, "\(totals)")
        #expect(totals.imageFailures.values.reduce(0, +) == 2 && totals.imageFailures.count == 2, "\(totals)")
        client.close()
    }
}
