import Larder
import LarderHTTP
import LarderResources
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// A boolean that is set once.
final class Flag: Sendable {
    private let value = Mutex(false)
    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }
}

@Suite("Client: events of a backend without change tokens", .oneMinute)
struct EventsTests {
    private let fixture = ClientFixture()
    private var clock: ManualClock { fixture.scene.clock }

    /// A backend with a note whose text counts its requests, and with event streams that the test scripts.
    private final class Server: Sendable {
        private struct State {
            var streams: [ScriptedTransport.Reply]
            var fetches = 0
        }

        private let state: Mutex<State>
        /// Never opens: holds a stream open.
        let forever = TransportGate()

        init(_ streams: [ScriptedTransport.Reply]) { state = Mutex(State(streams: streams)) }

        var fetches: Int { state.withLock { $0.fetches } }

        func transport() -> ScriptedTransport {
            ScriptedTransport { [self] request, _ throws(TransportError) in
                if request.url.hasSuffix("/token") { return ClientFixture.json(#"{"access": "2"}"#) }
                return state.withLock { state in
                    guard request.url.hasSuffix("/events") else {
                        state.fetches += 1
                        return ClientFixture.json(#"{"id": "7", "text": "\#(state.fetches)"}"#)
                    }
                    return state.streams.isEmpty ? Self.stream([.gate(forever)]) : state.streams.removeFirst()
                }
            }
        }

        static func stream(_ steps: [ScriptedTransport.Reply.Step]) -> ScriptedTransport.Reply {
            ScriptedTransport.Reply(fields: [.contentType: "text/event-stream"], steps)
        }
    }

    private static func event(_ data: String, id: String = "") -> ScriptedTransport.Reply.Step {
        .bytes(Array("event: changed\n\(id.isEmpty ? "" : "id: \(id)\n")data: \(data)\n\n".utf8))
    }

    /// The five lines of the README.
    private static let events = APIClient.Events(.eventStream("/events")) { update in
        update.invalidate(all: Note.self)
    } apply: { event, update in
        guard let id = event["note"] else { throw Broken() }
        update.invalidate(Note.self, id)
    }

    /// At rest, the next sleeper wakes up after this time.
    private func expectWakeUp(after wait: Duration) async {
        await rest()
        #expect(clock.nextWakeUp == clock.uptime + wait)
    }

    private func note(_ client: APIClient) -> Resource<Note> {
        .entity("7", freshness: .timeToLive(.seconds(86_400))) { [source = client.source] context in
            try await source.fetch("/notes/7", context: context)
        }
    }

    private func client(
        _ transport: ScriptedTransport,
        _ change: (inout APIClient.Events) -> Void = { _ in }
    ) async throws -> APIClient {
        var events = Self.events
        change(&events)
        return try await fixture.client(transport) { $0.events = events }
    }

    @Test func `an event is fetched by an observer, and a value from before the connection counts as stale`()
        async throws
    {
        let (before, after) = (TransportGate(), TransportGate())
        let server = Server([Server.stream([.gate(after), Self.event(#"{"note": 7}"#), .silence]).held(by: before)])
        let client = try await client(server.transport())
        let texts = SequenceRecorder(client.cache.snapshots(note(client)))
        await texts.wait { $0.last?.value?.text == "1" }
        before.open()
        // Events may have been missed before.
        await texts.wait { $0.last?.value?.text == "2" }
        let live = try #require(client.live)
        let states = SequenceRecorder(live.states)
        await states.wait { $0.last == .live(.eventStream) }
        after.open()
        await texts.wait { $0.last?.value?.text == "3" }
        #expect(server.fetches == 3)
        client.close()
    }

    @Test func `an event about something else fetches nothing`() async throws {
        let server = Server([Server.stream([Self.event(#"{"note": "8"}"#), .silence])])
        let client = try await client(server.transport())
        let states = SequenceRecorder(try #require(client.live).states)
        await states.wait { $0.last == .live(.eventStream) }
        #expect(try await client.cache.value(note(client)).text == "1")
        #expect(try await client.cache.value(note(client)).text == "1" && server.fetches == 1)
        client.close()
    }

    @Test func `after a broken connection it reconnects with back-off, and what events cover is stale`() async throws {
        let cut = TransportGate()
        let server = Server([
            Server.stream([.gate(cut), .failure(TransportError(.interrupted, "cut"))]),
            Server.stream([.silence]),
        ])
        let transport = server.transport()
        let client = try await client(transport)
        let states = SequenceRecorder(try #require(client.live).states)
        await states.wait { $0.last == .live(.eventStream) }
        #expect(try await client.cache.value(note(client)).text == "1")
        cut.open()
        await states.wait { $0.last == .waiting(failures: 1) }
        // A value that is shown meanwhile is not called stale: nothing is known of it.
        #expect(try await client.cache.value(note(client)).text == "1")
        await expectWakeUp(after: .milliseconds(250))
        clock.advance(by: .milliseconds(249))
        #expect(transport.requests.count { $0.url.hasSuffix("/events") } == 1)
        clock.advance(by: .milliseconds(1))
        await states.wait { $0.count { $0 == .live(.eventStream) } == 2 }
        #expect(try await client.cache.value(note(client)).text == "2")
        client.close()
    }

    @Test func `an event that cannot be mapped counts as a gap`() async throws {
        let bad = TransportGate()
        let server = Server([Server.stream([.gate(bad), Self.event("nonsense"), .silence])])
        let client = try await client(server.transport())
        let states = SequenceRecorder(try #require(client.live).states)
        await states.wait { $0.last == .live(.eventStream) }
        #expect(try await client.cache.value(note(client)).text == "1")
        bad.open()
        await rest()
        #expect(try await client.cache.value(note(client)).text != "1")
        #expect(client.live?.state == .live(.eventStream))
        client.close()
    }

    @Test func `a rejected token is renewed, and the stream is opened again at once`() async throws {
        let server = Server([ClientFixture.json("{}", status: .unauthorized), Server.stream([.silence])])
        let transport = server.transport()
        let client = try await client(transport) { $0.needsSession = true }
        #expect(client.live?.state == .idle && transport.requests.isEmpty)
        try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("1") }
        let states = SequenceRecorder(try #require(client.live).states)
        await states.wait { $0.last == .live(.eventStream) }
        #expect(transport.requests.map { $0.fields[.authorization] } == ["Bearer 1", nil, "Bearer 2"])
        client.close()
    }

    @Test func `a host that asks for a pause gets no further attempt before its end`() async throws {
        let server = Server([
            ClientFixture.json("{}", status: .serviceUnavailable, [.retryAfter: "30"]), Server.stream([.silence]),
        ])
        let transport = server.transport()
        let client = try await client(transport)
        let states = SequenceRecorder(try #require(client.live).states)
        await states.wait { $0.last == .waiting(failures: 1) }
        // Reads of the same host wait too.
        let error = await #expect(throws: LarderError.self) { try await client.cache.value(note(client)) }
        #expect(error?.code == .offline && error?.retryAfter == .seconds(30))
        await expectWakeUp(after: .seconds(30))
        clock.advance(by: .seconds(30))
        await expectWakeUp(after: .milliseconds(250))
        clock.advance(by: .milliseconds(249))
        #expect(transport.requests.count == 1)
        clock.advance(by: .milliseconds(1))
        await states.wait { $0.last == .live(.eventStream) }
        #expect(transport.requests.count == 2)
        client.close()
    }

    @Test func `a stream that the server ends for good is not opened again`() async throws {
        let server = Server([ScriptedTransport.Reply(status: .noContent)])
        let transport = server.transport()
        let client = try await client(transport)
        let live = try #require(client.live)
        await transport.waitForRequests(1)
        await rest()
        #expect(live.state == .idle)
        #expect(transport.requests.count == 1)
        client.close()
    }

    // MARK: Push notifications

    private func pushed(
        _ client: APIClient,
        _ payload: [String: any Sendable],
        _ fetch: (@Sendable (APIClient.Event) async throws -> Bool)? = nil
    ) async -> String {
        do throws(LarderError) {
            return try await client.received(push: payload, within: .seconds(20), fetch: fetch) ? "new" : "no"
        } catch {
            return error.code.rawValue
        }
    }

    @Test func `a push notification is mapped like an event, and its fetch ends before it returns`() async throws {
        let server = Server([])
        let client = try await client(server.transport()) { $0.channels = [] }
        let note = note(client)
        #expect(try await client.cache.value(note).text == "1")
        let cache = client.cache
        let outcome = await pushed(client, ["note": 7]) { _ in try await cache.value(note).text == "2" }
        #expect(outcome == "new" && server.fetches == 2)
        #expect(try await client.cache.value(note).text == "2" && server.fetches == 2)
        #expect(client.live == nil)
    }

    @Test func `a repeated push notification costs no second fetch, and one that failed is applied again`() async throws
    {
        let server = Server([])
        let client = try await client(server.transport()) { events in
            events.channels = []
            events.pushID = "messageID"
        }
        let note = note(client)
        let cache = client.cache
        let fetch: @Sendable (APIClient.Event) async throws -> Bool = { _ in
            _ = try await cache.value(note)
            return true
        }
        for expected in ["new", "no", "no"] {
            #expect(await pushed(client, ["note": 7, "messageID": "a"], fetch) == expected)
        }
        #expect(server.fetches == 1)
        #expect(await pushed(client, ["note": 7, "messageID": "b"]) { _ in throw Broken() } == "fetchFailed")
        #expect(await pushed(client, ["note": 7, "messageID": "b"], fetch) == "new")
        #expect(server.fetches == 2)
    }

    @Test func `a push notification on a full disk changes memory`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: fixture.scene.path, clock: clock))
        let store = try killable.store()
        let client = try await fixture.client(Server([]).transport()) { configuration in
            configuration.cache.storage = .store(store)
            configuration.events = Self.events
            configuration.events?.channels = []
        }
        let note = note(client)
        #expect(try await client.cache.value(note).text == "1")
        killable.fail(.full, untilHealed: true)
        #expect(await pushed(client, ["note": 7]) == "new")
        #expect(client.cache.stored(note)?.freshness == .stale(.invalidated))
        client.close()
    }

    @Test func `a push notification that takes too long fails in time`() async throws {
        let client = try await client(Server([]).transport()) { $0.channels = [] }
        let gate = TransportGate()
        let work = Task {
            await pushed(client, ["note": 7]) { _ in
                try await gate.pass(); return true
            }
        }
        await gate.waitForHeld()
        await expectWakeUp(after: .seconds(20))
        clock.advance(by: .seconds(20))
        #expect(await work.value == "timedOut")
    }

    @Test func `a push notification that cannot be mapped fails and marks as stale what events cover`() async throws {
        let server = Server([])
        let client = try await client(server.transport()) { $0.channels = [] }
        #expect(try await client.cache.value(note(client)).text == "1")
        #expect(await pushed(client, ["aps": ["badge": 1]]) == "fetchFailed")
        #expect(try await client.cache.value(note(client)).text == "2")
        let bare = try await fixture.client(server.transport())
        #expect(await pushed(bare, ["note": 7]) == "invalidArgument")
    }
}
