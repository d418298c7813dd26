import Foundation
import Larder
import LarderHTTP
import LarderResources
import LarderStorage
import LarderTesting
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// A photo whose ID is its URL.
struct LinkedPhoto: CacheEntity {
    private enum CodingKeys: String, CodingKey { case id = "url" }

    static let entityType = "photo"
    var id: String
}

/// Uploads in pieces (draft-ietf-httpbis-resumable-upload) to servers that do what the draft allows, and what it does not.
@Suite("Client: uploads", .oneMinute)
struct UploadTests {
    /// A server of the draft. `answer` gets each request, and what carries out a request and returns its regular reply.
    private final class Server: Sendable {
        typealias Reply = ScriptedTransport.Reply
        typealias Answer = @Sendable (_ request: TransportRequest, _ regular: (TransportRequest) -> Reply) -> Reply

        struct State {
            var content: [UInt8] = []
            var isComplete = false
            var uploads = 0
        }

        let state = Mutex(State())
        let transport: ScriptedTransport

        init(_ answer: @escaping Answer = { $1($0) }) {
            // Set below: the transport needs this object.
            let reference = Mutex<Server?>(nil)
            transport = ScriptedTransport { request, _ in
                guard let server = reference.withLock({ $0 }) else { return .text("", status: .notFound) }
                return answer(request) { server.regular($0) }
            }
            reference.withLock { [self] in $0 = self }
        }

        static func fields(_ offset: Int, isComplete: Bool) -> Fields {
            ["Upload-Offset": "\(offset)", "Upload-Complete": isComplete ? "?1" : "?0"]
        }

        static func isLast(_ request: TransportRequest) -> Bool {
            request.method == .patch && request.fields["Upload-Complete"] == "?1"
        }

        private func regular(_ request: TransportRequest) -> Reply {
            state.withLock { state in
                switch request.method {
                case .post, .put:
                    state = State(uploads: state.uploads + 1)
                    var fields = Self.fields(0, isComplete: false)
                    fields.set(.location, "/uploads/\(state.uploads)")
                    return .text("", status: .created, fields: fields)
                case .patch:
                    let isNext = request.fields["Upload-Offset"] == "\(state.content.count)" && !state.isComplete
                    guard isNext else {
                        let fields = Self.fields(state.content.count, isComplete: state.isComplete)
                        return .text("", status: .conflict, fields: fields)
                    }
                    state.content += request.body
                    state.isComplete = Self.isLast(request)
                    let fields = Self.fields(state.content.count, isComplete: state.isComplete)
                    guard state.isComplete else { return .text("", status: .noContent, fields: fields) }
                    return ClientFixture.json(#"{"id":"p1"}"#, status: .created, ["Upload-Complete": "?1"])
                default:
                    let fields = Self.fields(state.content.count, isComplete: state.isComplete)
                    return .text("", status: .noContent, fields: fields)
                }
            }
        }

        /// The requests that have begun an upload.
        var beginnings: [TransportRequest] { transport.requests.filter { $0.method == .post || $0.method == .put } }
        var pieces: [TransportRequest] { transport.requests.filter { $0.method == .patch } }
        var content: [UInt8] { state.withLock { $0.content } }
    }

    private let fixture = ClientFixture()
    private let path: String
    private let photo: [UInt8]

    init() throws {
        photo = (0..<600_000).map { UInt8(truncatingIfNeeded: $0 / 251 &+ $0) }
        try FileManager.default.createDirectory(atPath: fixture.scene.path, withIntermediateDirectories: true)
        path = fixture.scene.path + "/photo.png"
        try Data(photo).write(to: URL(fileURLWithPath: path))
    }

    private func client(
        _ transport: any Transport,
        _ change: (inout APIClient.Configuration) -> Void = { _ in }
    ) async throws -> APIClient {
        try await fixture.client(transport) {
            // A failed attempt is repeated when the network returns.
            $0.cache.random = { 1 }
            change(&$0)
        }
    }

    @discardableResult
    private func upload(
        _ client: APIClient,
        _ write: APIClient.Write = APIClient.Write(.post, "/photos")
    ) async throws -> OperationID {
        try await client.upload(write, file: path, contentType: "image/png")
    }

    /// Repeats failed attempts until nothing more is sent, at most eight times.
    ///
    /// - Returns: the operation, if the server or the client has rejected it; nil: it was accepted.
    private func settled(_ client: APIClient) async -> Outbox.Entry? {
        var attempts = 0
        for _ in 0..<8 {
            await reached {
                guard let entry = client.cache.outbox.entries.first else { return true }
                let hasFailed = entry.attempts > attempts && entry.error != nil && entry.state != .sending
                return entry.state == .rejected || hasFailed
            }
            guard let entry = client.cache.outbox.entries.first, entry.state != .rejected else {
                return client.cache.outbox.entries.first
            }
            attempts = entry.attempts
            client.cache.networkReturned()
        }
        Issue.record("The upload goes on: \(client.cache.outbox.entries)")
        return client.cache.outbox.entries.first
    }

    private static let lost = ScriptedTransport.Reply.failure(TransportError(.interrupted, "The reply was lost."))

    private static func problem(_ status: Int, isComplete: Bool = false) -> ScriptedTransport.Reply {
        var fields: Fields = [.contentType: "application/problem+json"]
        if isComplete { fields.set("Upload-Complete", "?1") }
        return .text(#"{"title":"No"}"#, status: Status(code: status), fields: fields)
    }

    // MARK: The end of an upload

    @Test(
        arguments: [
            (404, .head), (410, .head), (404, .patch), (410, .patch), (409, .patch), (400, .patch),
        ] as [(Int, LarderHTTP.Method)]
    )
    func `a file whose last reply was lost is not sent again if the server does not repeat the reply`(
        status: Int,
        method: LarderHTTP.Method
    ) async throws {
        let isOver = Mutex(false)
        let server = Server { request, regular in
            if isOver.withLock({ $0 }), request.method == method { return Self.problem(status) }
            let reply = regular(request)
            guard Server.isLast(request) else { return reply }
            isOver.withLock { $0 = true }
            return Self.lost
        }
        let client = try await client(server.transport)
        try await upload(client)
        let entry = try #require(await settled(client))
        #expect(entry.state == .rejected)
        #expect(entry.rejection?.title.contains("whole file") == true, "\(String(describing: entry.rejection))")
        #expect(server.beginnings.count == 1 && server.content == photo)
        client.close()
    }

    @Test(arguments: [false, true])
    func `a file whose last piece was perhaps sent is not sent again after an attempt that did not send it`(
        takesLess: Bool
    ) async throws {
        let attempts = Mutex(0)
        let isOver = Mutex(false)
        let server = Server { request, regular in
            if isOver.withLock({ $0 }), request.method == .head { return Self.problem(404) }
            let number = attempts.withLock { attempts in
                if attempts > 0 && request.method == .patch || Server.isLast(request) { attempts += 1 }
                return attempts
            }
            guard request.method == .patch, number > 0 else {
                guard request.method == .head, takesLess else { return regular(request) }
                var fields = Server.fields(2 * 262_144, isComplete: false)
                fields.set("Upload-Limit", "max-append-size=1000")
                return .text("", status: .noContent, fields: fields)
            }
            guard number > 1 else { return Self.lost }
            isOver.withLock { $0 = true }
            return takesLess ? Self.lost : .failure(TransportError(.unreachable, "Nothing was sent."))
        }
        let client = try await client(server.transport)
        try await upload(client)
        let entry = try #require(await settled(client))
        #expect(entry.state == .rejected)
        #expect(entry.rejection?.title.contains("whole file") == true, "\(String(describing: entry.rejection))")
        #expect(server.beginnings.count == 1 && server.pieces.count == 4)
        #expect(server.pieces.map { Server.isLast($0) } == [false, false, true, !takesLess])
        client.close()
    }

    @Test(arguments: [422, 404, 403])
    func `an error with a complete upload is the reply of the write, and a retry is another upload`(
        status: Int
    ) async throws {
        let isFirst = Mutex(true)
        let server = Server { request, regular in
            let reply = regular(request)
            guard Server.isLast(request), isFirst.withLock({ $0 }) else { return reply }
            isFirst.withLock { $0 = false }
            return Self.problem(status, isComplete: true)
        }
        let client = try await client(server.transport)
        let id = try await upload(client)
        let entry = try #require(await settled(client))
        #expect(entry.state == .rejected && entry.rejection?.status == status)
        #expect(server.beginnings.count == 1)
        try client.cache.outbox.retry(id)
        #expect(await settled(client) == nil)
        let keys = server.beginnings.map { $0.fields[.idempotencyKey] }
        #expect(keys.count == 2 && Set(keys).count == 2 && server.content == photo)
        client.close()
    }

    @Test func `an upload that failed when it was processed is asked for again, and not taken as accepted`()
        async throws
    {
        let isFirst = Mutex(true)
        let server = Server { request, regular in
            let reply = regular(request)
            guard Server.isLast(request), isFirst.withLock({ $0 }) else { return reply }
            isFirst.withLock { $0 = false }
            return Self.problem(503, isComplete: true)
        }
        let client = try await client(server.transport) { $0.retryScope = { _ in nil } }
        try await upload(client)
        let entry = try #require(await settled(client))
        #expect(entry.state == .rejected)
        #expect(server.beginnings.count == 1)
        client.close()
    }

    @Test func `a last piece that was taken without completing the upload is followed by an empty one`() async throws {
        let isFirst = Mutex(true)
        let server = Server { request, regular in
            guard Server.isLast(request), isFirst.withLock({ $0 }) else { return regular(request) }
            isFirst.withLock { $0 = false }
            var piece = request
            piece.fields.set("Upload-Complete", "?0")
            return regular(piece)
        }
        let client = try await client(server.transport)
        try await upload(client)
        #expect(await settled(client) == nil)
        #expect(server.pieces.last.map { $0.body.isEmpty && Server.isLast($0) } == true)
        #expect(server.beginnings.count == 1 && server.content == photo)
        client.close()
    }

    @Test func `an upload that is under way waits for the next sign-in after a sign-out of the session`() async throws {
        let gate = TransportGate()
        let server = Server { request, regular in
            let reply = regular(request)
            let isSecond = request.method == .patch && request.fields["Upload-Offset"] == "262144"
            return isSecond ? reply.held(by: gate) : reply
        }
        let client = try await client(server.transport)
        try await client.session.use(token: "1", userID: "ana")
        try await upload(client)
        await gate.waitForHeld()
        await client.session.signOut()
        gate.open()
        await reached { client.cache.outbox.entries.first.map { $0.error?.code == .unauthorized } ?? true }
        #expect(server.pieces.count == 2 && !client.cache.outbox.entries.isEmpty)
        try await client.session.use(token: "2", userID: "ana")
        #expect(await settled(client) == nil)
        #expect(server.pieces.last?.fields[.authorization] == "Bearer 2" && server.content == photo)
        client.close()
    }

    @Test func `a last piece that was turned away with 401 does not decide the upload`() async throws {
        let isRejecting = Mutex(true)
        let isForgotten = Mutex(false)
        let server = Server { request, regular in
            if Server.isLast(request), isRejecting.withLock({ $0 }) {
                isForgotten.withLock { $0 = true }
                return ClientFixture.json("{}", status: .unauthorized)
            }
            if request.method == .head, isForgotten.withLock({ $0 }) {
                isRejecting.withLock { $0 = false }
                isForgotten.withLock { $0 = false }
                return Self.problem(404)
            }
            return regular(request)
        }
        let client = try await client(server.transport)
        try await upload(client)
        #expect(await settled(client) == nil)
        #expect(server.beginnings.count == 2 && server.content == photo)
        client.close()
    }

    @Test func `a reply of a proxy does not end an upload`() async throws {
        let isFirst = Mutex(true)
        let server = Server { request, regular in
            guard request.method == .patch, isFirst.withLock({ $0 }) else { return regular(request) }
            isFirst.withLock { $0 = false }
            return .text("404 page not found", status: .notFound, fields: [.contentType: "text/plain"])
        }
        let client = try await client(server.transport)
        try await upload(client)
        #expect(await settled(client) == nil)
        #expect(server.beginnings.count == 1 && server.content == photo)
        client.close()
    }

    @Test func `a message takes the URL of a photo from the reply to its upload, also after a restart between both`()
        async throws
    {
        let isOffline = Mutex(true)
        let messages = Mutex<[String]>([])
        let server = Server { request, regular in
            guard request.url.hasSuffix("/messages") else {
                let reply = regular(request)
                guard Server.isLast(request) else { return reply }
                return ClientFixture.json(
                    #"{"url":"http://server/p/1.png"}"#,
                    status: .created,
                    ["Upload-Complete": "?1"]
                )
            }
            guard !isOffline.withLock({ $0 }) else { return Self.lost }
            messages.withLock { $0.append(String(decoding: request.body, as: UTF8.self)) }
            return .text("", status: .noContent)
        }
        let first = try await client(server.transport)
        let photo = APIClient.localID()
        var write = APIClient.Write(.post, "/photos")
        write.create(LinkedPhoto(id: photo))
        try await upload(first, write)
        try first.write(.post, "/messages", ["text": "look", "image": photo])
        await reached { first.cache.outbox.entries.count == 1 && first.cache.outbox.entries.first?.error != nil }
        first.close()
        isOffline.withLock { $0 = false }
        let second = try await client(server.transport)
        try await second.cache.outbox.drained()
        #expect(messages.withLock { $0 } == [#"{"image":"http://server/p/1.png","text":"look"}"#])
        #expect(server.beginnings.count { $0.url.hasSuffix("/photos") } == 1)
        second.close()
    }

    /// A server that speaks tus, made of one that speaks the draft.
    private static func tus(_ body: String? = nil) -> Server {
        Server { request, regular in
            #expect(request.fields["Tus-Resumable"] == "1.0.0" && request.fields["Upload-Complete"] == nil)
            var request = request
            let end = Int(request.fields["Upload-Offset"] ?? "").map { $0 + request.body.count }
            if end == 600_000 { request.fields.set("Upload-Complete", "?1") }
            _ = regular(request)
            guard request.method == .post else {
                let fields: Fields = ["Upload-Offset": "\(end ?? 0)"]
                guard let body, end == 600_000 else { return .text("", status: .noContent, fields: fields) }
                return ClientFixture.json(body, fields)
            }
            #expect(request.body.isEmpty && request.fields["Upload-Length"] == "600000")
            #expect(request.fields["Upload-Metadata"] == "filetype aW1hZ2UvcG5n")
            return .text("", status: .created, fields: [.location: "/uploads/u1"])
        }
    }

    @Test(arguments: [nil, #"{"id":"p9"}"#] as [String?])
    func `with tus the last byte ends the upload, and the reply or the URL of the upload names what was created`(
        body: String?
    ) async throws {
        let server = Self.tus(body)
        let client = try await client(server.transport) { $0.http.uploads = .tus }
        let photo = APIClient.localID()
        var write = APIClient.Write(.post, "/photos")
        write.create(LinkedPhoto(id: photo))
        try await upload(client, write)
        #expect(await settled(client) == nil)
        #expect(server.content == self.photo)
        #expect(client.cache.serverID(of: photo) == (body == nil ? "u1" : "p9"))
        let types = Set(server.pieces.map { $0.fields[.contentType] })
        #expect(types == ["application/offset+octet-stream"])
        client.close()
    }

    // MARK: Places

    @Test func `a server that leads the beginning to another origin gets neither pieces nor credentials`() async throws
    {
        let transport = ScriptedTransport { request, _ in
            guard request.url.hasPrefix("http://server") else {
                return .text("", status: .created, fields: [.location: "http://other/uploads/1", "Upload-Offset": "0"])
            }
            return .text("", status: Status(code: 307), fields: [.location: "http://other/photos"])
        }
        let client = try await client(transport)
        try await client.session.use(token: "secret", userID: "ana")
        try await upload(client)
        let entry = try #require(await settled(client))
        #expect(entry.state == .rejected)
        let others = transport.requests.filter { !$0.url.hasPrefix("http://server") }
        #expect(others.allSatisfy { $0.method == .post && $0.body.isEmpty && $0.fields[.authorization] == nil })
        client.close()
    }

    /// The client of an account whose API is at another server now.
    private func moved(_ server: Server) async throws -> APIClient {
        var configuration = APIClient.Configuration(transport: server.transport)
        configuration.cache = fixture.scene.configuration(inMemory: true)
        configuration.services = .none
        return try await APIClient(
            server: "http://moved",
            account: "ana",
            directory: fixture.scene.path,
            configuration
        )
    }

    @Test func `an upload whose last piece was perhaps sent to another server is not sent to the present one`()
        async throws
    {
        let server = Server { request, regular in
            let reply = regular(request)
            return Server.isLast(request) ? Self.lost : reply
        }
        let first = try await client(server.transport)
        try await upload(first)
        await reached { server.pieces.contains { Server.isLast($0) } }
        first.close()
        let second = Server()
        let moved = try await moved(second)
        let entry = try #require(await settled(moved))
        #expect(entry.state == .rejected && second.beginnings.isEmpty)
        moved.close()
    }

    @Test func `an upload that was begun at another server begins anew at the present one`() async throws {
        let server = Server { request, regular in request.method == .patch ? Self.lost : regular(request) }
        let first = try await client(server.transport)
        try await upload(first)
        await reached { server.pieces.count == 1 }
        first.close()
        let second = Server()
        let moved = try await moved(second)
        #expect(await settled(moved) == nil)
        #expect(second.transport.requests.allSatisfy { $0.url.hasPrefix("http://moved/") })
        #expect(second.content == photo)
        moved.close()
    }

    @Test(arguments: ["-1", "600001", "9223372036854775808", "x", nil], [LarderHTTP.Method.head, .post, .patch])
    func `an offset outside of the file ends the upload with an error`(
        offset: String?,
        method: LarderHTTP.Method
    ) async throws {
        let isFirst = Mutex(true)
        let server = Server { request, regular in
            // The first piece is lost, so that the offset is asked for.
            if method == .head, request.method == .patch, isFirst.withLock({ $0 }) {
                isFirst.withLock { $0 = false }
                return Self.lost
            }
            guard request.method == method else { return regular(request) }
            _ = regular(request)
            var fields: Fields = ["Upload-Complete": "?0", .location: "/uploads/1"]
            if let offset { fields.set("Upload-Offset", offset) }
            return .text("", status: .noContent, fields: fields)
        }
        let client = try await client(server.transport)
        try await upload(client)
        let entry = await settled(client)
        // Only the reply to HEAD must have it.
        if offset == nil, method != .head {
            #expect(server.content == photo)
        } else {
            #expect(entry?.state == .rejected)
        }
        client.close()
    }

    @Test(arguments: ["X-Request-Key", nil] as [FieldName?])
    func `an upload that the server has forgotten begins under another key, wherever the key is`(
        field: FieldName?
    ) async throws {
        let isFirst = Mutex(true)
        let server = Server { request, regular in
            guard request.method == .patch, isFirst.withLock({ $0 }) else { return regular(request) }
            isFirst.withLock { $0 = false }
            return Self.problem(404)
        }
        let client = try await client(server.transport)
        var write = APIClient.Write(.post, field == nil ? "/photos?key=\(APIClient.Write.keyPlaceholder)" : "/photos")
        if let field { write.keyField = field }
        try await upload(client, write)
        #expect(await settled(client) == nil)
        let keys = server.beginnings.map { request in
            field.flatMap { request.fields[$0] } ?? request.url.split(separator: "=").last.map(String.init)
        }
        #expect(keys.count == 2 && Set(keys).count == 2 && server.content == photo)
        client.close()
    }

    @Test func `a server that takes no uploads in pieces is reported, and gets no piece`() async throws {
        for location in [nil, "/photos/17"] as [String?] {
            let transport = ScriptedTransport { request, _ in
                var fields = Fields()
                if let location { fields.set(.location, location) }
                return ClientFixture.json(#"{"id":"17"}"#, status: request.method == .post ? .created : .ok, fields)
            }
            let client = try await client(transport)
            let id = try await upload(client)
            let entry = try #require(await settled(client))
            #expect(entry.state == .rejected)
            #expect(transport.requests.allSatisfy { $0.method != .patch })
            try client.cache.outbox.drop(id)
            client.close()
        }
    }

    // MARK: Requests

    @Test func `a write that has a body cannot carry a file`() async throws {
        let server = Server()
        let client = try await client(server.transport)
        let write = APIClient.Write(.post, "/photos", ["title": "lake"])
        let error = await #expect(throws: LarderError.self) { try await upload(client, write) }
        #expect(error?.code == .invalidArgument)
        #expect(client.cache.outbox.entries.isEmpty && server.transport.requests.isEmpty)
        client.close()
    }

    @Test func `a pipe is refused, and nothing waits for its writer`() async throws {
        let server = Server()
        let client = try await client(server.transport)
        try FileManager.default.removeItem(atPath: path)
        let isMade = unsafe mkfifo(path, 0o600) == 0
        #expect(isMade)
        let error = await #expect(throws: LarderError.self) { try await upload(client) }
        #expect(error?.code == .invalidArgument && client.cache.outbox.entries.isEmpty)
        client.close()
    }

    @Test(arguments: [
        ("max-size=1000000, max-append-size=200000", [200_000, 200_000, 200_000]),
        ("min-append-size=400000;a=1", [400_000, 200_000]), ("max-append-size=x", [262_144, 262_144, 75_712]),
    ])
    func `pieces have the size that the server takes`(limit: String, sizes: [Int]) async throws {
        let server = Server { request, regular in
            guard request.method == .post else { return regular(request) }
            _ = regular(request)
            var fields = Server.fields(0, isComplete: false)
            fields.set(.location, "/uploads/1")
            fields.set("Upload-Limit", limit)
            return .text("", status: .created, fields: fields)
        }
        let client = try await client(server.transport)
        try await upload(client)
        #expect(await settled(client) == nil)
        #expect(server.pieces.map(\.body.count) == sizes && server.content == photo)
        client.close()
    }

    @Test func `an upload that is refused because its entity has changed is a conflict with the server's state`()
        async throws
    {
        let server = Server { request, regular in
            let reply = regular(request)
            if request.method == .get {
                return ClientFixture.json(#"{"id":"7","title":"One","isStarred":false}"#, [.etag: "\"1\""])
            }
            guard Server.isLast(request) else { return reply }
            return ClientFixture.json(
                #"{"id":"7","title":"Two","isStarred":false}"#,
                status: .preconditionFailed,
                [.etag: "\"2\"", "Upload-Complete": "?1"]
            )
        }
        let client = try await client(server.transport)
        let article = Resource<Article>.entity("7") { try await client.source.fetch("/articles/7", context: $0) }
        _ = try await client.cache.value(article)
        var write = APIClient.Write(.put, "/articles/7/cover")
        write.fields.set(.ifMatch, "\"1\"")
        write.modify(Article.self, "7") { $0.isStarred = true }
        let id = try await upload(client, write)
        _ = await settled(client)
        let conflict = try #require(try client.cache.outbox.conflict(id, of: Article.self))
        #expect(conflict.theirs.title == "Two" && conflict.validator == "\"2\"")
        client.close()
    }

    // MARK: Files

    private struct Mask: DiskStore.PayloadTransform {
        let byte: UInt8
        var identifier: String { "mask" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] { payload.map { $0 ^ byte } }

        func decode(_ stored: [UInt8]) throws -> [UInt8] { stored.map { $0 ^ byte } }
    }

    @Test func `a file stays while its write cannot be read with the present key, and is sent with its own one`()
        async throws
    {
        let server = Server()
        func open(_ byte: UInt8) async throws -> APIClient {
            var store = DiskStore.Configuration(directory: fixture.directory, clock: fixture.scene.clock)
            store.transform = Mask(byte: byte)
            return try await client(server.transport) { $0.cache.storage = .disk(store) }
        }
        fixture.scene.isOnline.withLock { $0 = false }
        let first = try await open(1)
        try await upload(first)
        first.close()
        let second = try await open(2)
        // The sweep at the start has ended.
        try await reached {
            let isReported = fixture.scene.events.withLock { events in
                events.contains { if case .storageFailed(let error) = $0 { error.code == .encoding } else { false } }
            }
            let copies = try FileManager.default.contentsOfDirectory(atPath: fixture.directory + "/outbox/uploads")
            return isReported || copies.isEmpty
        }
        second.close()
        fixture.scene.isOnline.withLock { $0 = true }
        let third = try await open(1)
        #expect(await settled(third) == nil)
        #expect(server.content == photo)
        third.close()
    }

    // MARK: Other writes

    @Test func `an upload takes no place of another write, and one is sent at a time`() async throws {
        let gate = TransportGate()
        let isHeld = Mutex(true)
        let server = Server { request, regular in
            if request.url.hasSuffix("/star") { return .text("", status: .noContent) }
            let reply = regular(request)
            return request.method == .patch && isHeld.withLock { $0 } ? reply.held(by: gate) : reply
        }
        let client = try await client(server.transport) { $0.cache.concurrentSendsMaximum = 1 }
        try await upload(client)
        await gate.waitForHeld()
        try await upload(client, APIClient.Write(.post, "/pictures"))
        for number in 0..<3 { try client.write(.put, "/articles/\(number)/star") }
        await reached { server.transport.requests.count { $0.url.hasSuffix("/star") } == 3 }
        #expect(server.transport.requests.count { $0.method == .post } == 1)
        isHeld.withLock { $0 = false }
        gate.open()
        try await client.cache.outbox.drained()
        #expect(server.transport.requests.count { $0.method == .post } == 2)
        client.close()
    }

    @Test func `a dropped upload is cancelled at the server`() async throws {
        let server = Server { request, regular in
            request.method == .patch && request.fields["Upload-Offset"] != "0" ? Self.lost : regular(request)
        }
        let client = try await client(server.transport)
        let id = try await upload(client)
        await reached { client.cache.outbox.entries.first.map { $0.error != nil && $0.state != .sending } ?? false }
        try client.cache.outbox.drop(id)
        await reached { server.transport.requests.contains { $0.method == .delete } }
        #expect(server.transport.requests.last?.url == "http://server/uploads/1")
        client.close()
    }

    @Test func `a dropped upload that cannot be cancelled at the server is reported`() async throws {
        let server = Server { request, regular in
            request.method == .delete || request.method == .patch && request.fields["Upload-Offset"] != "0"
                ? Self.lost : regular(request)
        }
        let failures = Mutex<[ErrorCode<LarderError>]>([])
        let client = try await client(server.transport) { configuration in
            configuration.cache.onEvent = { event in
                guard case .failed("larder.upload", let error) = event else { return }
                failures.withLock { $0.append(error.code) }
            }
        }
        let id = try await upload(client)
        await reached { client.cache.outbox.entries.first.map { $0.error != nil && $0.state != .sending } ?? false }
        try client.cache.outbox.drop(id)
        await reached { failures.withLock { $0 } == [.offline] }
        client.close()
    }
}
