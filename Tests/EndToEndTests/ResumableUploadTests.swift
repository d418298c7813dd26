import Foundation
import Larder
import LarderCoding
import LarderHTTP
import LarderResources
import LarderServer
import LarderTesting
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

/// A photo that a write carries. The server makes its ID.
struct UploadedPhoto: CacheEntity {
    static let entityType = "photo"
    var id: String
    var width = 0
    var height = 0
}

/// A message, as this test needs it.
struct MessageWithPhoto: CacheEntity {
    static let entityType = "message"
    var id: String
    var text: String
}

@Suite("Uploads that survive", .oneMinute)
struct ResumableUploadTests {
    /// Counts the pieces, and fails from one of them on as an app that is killed.
    private final class Pieces: Transport {
        private struct State {
            var rest = Int.max
            var isWithoutMessages = false
            var gate: TransportGate?
            var sent: [TransportRequest] = []
        }

        private let base = SocketTransport(clock: ManualClock())
        private let state = Mutex(State())

        /// The requests that were let through.
        var sent: [TransportRequest] { state.withLock { $0.sent } }

        var bytes: Int { sent.filter { $0.method == .patch }.reduce(0) { $0 + $1.body.count } }

        /// - Parameter gate: holds the first piece that is not let through.
        func allow(_ count: Int, thenHold gate: TransportGate? = nil) {
            state.withLock { ($0.rest, $0.gate) = (count, gate) }
        }

        /// Whether no message is let through.
        var isWithoutMessages: Bool {
            get { state.withLock { $0.isWithoutMessages } }
            set { state.withLock { $0.isWithoutMessages = newValue } }
        }

        func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
            let isLost = state.withLock { state in
                if state.isWithoutMessages, request.method == .post, request.url.hasSuffix("/messages") { return true }
                if request.method == .patch {
                    state.rest -= 1
                    guard state.rest >= 0 else { return true }
                }
                state.sent.append(request)
                return false
            }
            if isLost {
                try await state.withLock { $0.gate }?.pass()
                throw TransportError(.unreachable, "The network has gone.")
            }
            return try await base.open(request)
        }
    }

    private let scratch: ScratchDirectory
    private let backend: MockBackend
    private let world: MockWorld
    private let pieces = Pieces()
    private let photo: [UInt8]
    private let path: String

    init() throws {
        scratch = try ScratchDirectory()
        backend = try MockBackend.startSmall()
        AloneWithinTime.atEnd { [backend] in await backend.stop() }
        world = try backend.makeWorld()
        // The head of a PNG of 640 × 480, and content in three pieces.
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
        bytes += [0, 0, 2, 128, 0, 0, 1, 224, 8, 2, 0, 0, 0]
        var random = SeededGenerator(seed: 7)
        while bytes.count < 700_000 { bytes.append(UInt8(truncatingIfNeeded: random.next())) }
        photo = bytes
        path = scratch.path + "/photo.png"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    private func client(
        _ uploads: HTTPSource.UploadProtocol = .ietf,
        _ change: (inout APIClient.Configuration) -> Void = { _ in }
    ) async throws -> APIClient {
        var configuration = APIClient.Configuration(transport: pieces)
        configuration.http.uploads = uploads
        configuration.cache.monotonicClock = ManualClock()
        // A failed attempt is repeated when the network returns.
        configuration.cache.random = { 1 }
        configuration.services = .none
        change(&configuration)
        let client = try await APIClient(
            server: world.url,
            account: "ana",
            directory: scratch.path + "/store",
            configuration
        )
        try await client.session.use(token: "dev-ana", userID: "user_1")
        return client
    }

    @discardableResult
    private func upload(_ client: APIClient, _ path: String? = nil) async throws -> OperationID {
        let write = APIClient.Write(.post, "/v1/photos")
        return try await client.upload(write, file: path ?? self.path, contentType: "image/png")
    }

    /// Waits until an attempt has failed, and the next one waits.
    private func failed(_ client: APIClient, attempts: Int = 1) async {
        await reached {
            client.cache.outbox.entries.first.map { entry in
                entry.attempts >= attempts && entry.error != nil && entry.state != .sending
            } ?? false
        }
    }

    /// The copies on disk.
    private var copies: [String] {
        get throws {
            let files = FileManager.default.enumerator(atPath: scratch.path + "/store")
            return (files?.allObjects as? [String] ?? []).filter { $0.contains("/uploads/") && !$0.hasSuffix(".lock") }
        }
    }

    /// The bytes of an image on the server.
    private func image(_ id: String) async throws -> [UInt8] {
        try await pieces.send(TransportRequest(url: world.url + "/v1/images/" + id)).body
    }

    /// Writes a photo and a message with it.
    ///
    /// - Returns: the local ID of the photo.
    private func writePhotoAndMessage(_ client: APIClient) async throws -> String {
        let local = APIClient.localID()
        var upload = APIClient.Write(.post, "/v1/photos")
        upload.create(UploadedPhoto(id: local))
        try await client.upload(upload, file: path, contentType: "image/png")
        struct NewMessage: Encodable, Sendable {
            var text: String
            var clientId: String
            var image: [String: String]
        }
        try client.write(
            .post,
            "/v1/conversations/conv_1/messages",
            NewMessage(text: "look", clientId: "c1", image: ["id": local])
        )
        return local
    }

    /// The newest messages on the server.
    private func messages() async throws -> [JSONValue] {
        let reply = try await pieces.send(
            TransportRequest(
                url: world.url + "/v1/conversations/conv_1/messages?limit=2",
                fields: [.authorization: "Bearer dev-ana"]
            )
        )
        return try JSONParser.parse(reply.body)["items"]?.array ?? []
    }

    @Test(arguments: [HTTPSource.UploadProtocol.ietf, .tus])
    func `a photo is sent in pieces, and a message that was written with it has it`(
        by uploads: HTTPSource.UploadProtocol
    ) async throws {
        let client = try await client(uploads)
        client.cache.outbox.pause()
        let local = try await writePhotoAndMessage(client)
        #expect(try copies.count == 4, "A directory and three pieces.")
        let modes = try copies.map { file in
            let attributes = try FileManager.default.attributesOfItem(atPath: scratch.path + "/store/" + file)
            return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
        }
        #expect(modes.allSatisfy { $0 & 0o077 == 0 })
        try FileManager.default.removeItem(atPath: path)
        client.cache.outbox.resume()
        try await client.cache.outbox.drained()
        #expect(pieces.bytes == photo.count && pieces.sent.filter { $0.method == .patch }.count == 3)
        let id = try #require(client.cache.serverID(of: local))
        #expect(try await image(id) == photo)
        let newest = try await messages().first
        #expect(newest?["text"]?.string == "look" && newest?["image"]?["id"]?.string == id)
        #expect(newest?["image"]?["width"]?.integer == 640 && newest?["image"]?["height"]?.integer == 480)
        try await reached { try copies.isEmpty }
        client.close()
    }

    @Test(arguments: [HTTPSource.UploadProtocol.ietf, .tus])
    func `an app that is killed between a photo and its message sends the message with the photo, and nothing twice`(
        by uploads: HTTPSource.UploadProtocol
    ) async throws {
        let first = try await client(uploads)
        first.cache.outbox.pause()
        pieces.isWithoutMessages = true
        _ = try await writePhotoAndMessage(first)
        first.cache.outbox.resume()
        await reached { first.cache.outbox.entries.count == 1 }
        await failed(first)
        first.close()
        #expect(pieces.bytes == photo.count && !pieces.sent.contains { $0.url.hasSuffix("/messages") })
        pieces.isWithoutMessages = false
        let second = try await client(uploads)
        try await second.cache.outbox.drained()
        let found = try await messages()
        #expect(found[0]["text"]?.string == "look" && found[0]["image"]?["id"]?.string == "img_upload_1")
        #expect(found[1]["text"]?.string != "look")
        #expect(pieces.bytes == photo.count && pieces.sent.count { $0.method == .post } == 2, "Photo and message.")
        #expect(try await image("img_upload_1") == photo)
        second.close()
    }

    @Test(arguments: [HTTPSource.UploadProtocol.ietf, .tus])
    func `an app that is killed three times goes on where the server has it, and sends no piece twice`(
        by uploads: HTTPSource.UploadProtocol
    ) async throws {
        for attempt in 0..<3 {
            // A client sends what it finds as soon as it opens.
            pieces.allow(1)
            let client = try await client(uploads)
            if attempt == 0 { try await upload(client) }
            if attempt < 2 {
                await failed(client)
                #expect(pieces.sent.filter { $0.method == .patch }.count == attempt + 1)
            } else {
                try await client.cache.outbox.drained()
                try await reached { try copies.isEmpty }
            }
            client.close()
        }
        #expect(pieces.bytes == photo.count)
        #expect(pieces.sent.filter { $0.method == .post }.count == 1)
        #expect(try await image("img_upload_1") == photo)
        #expect(try await ask(.head, "/v1/uploads/2").status == 404)
    }

    @Test(arguments: [HTTPSource.UploadProtocol.ietf, .tus])
    func `the lost reply to the last piece is asked for again`(by uploads: HTTPSource.UploadProtocol) async throws {
        var last = FaultMatch("PATCH", "/v1/uploads/*")
        last.headers = ["Upload-Offset": "524288"]
        var once = Fault.Occurrence()
        once.count = 1
        try world.set(Fault(.loseReply(.reset), when: last, occurrence: once))
        let client = try await client(uploads)
        try await upload(client)
        await failed(client)
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        #expect(pieces.bytes == photo.count)
        #expect(try await image("img_upload_1") == photo)
        client.close()
    }

    @Test(arguments: [0, 524_288], [HTTPSource.UploadProtocol.ietf, .tus])
    func `an upload that is cut at a byte goes on at the byte that the server has`(
        start: Int,
        by uploads: HTTPSource.UploadProtocol
    ) async throws {
        var piece = FaultMatch("PATCH", "/v1/uploads/*")
        piece.headers = ["Upload-Offset": "\(start)"]
        var once = Fault.Occurrence()
        once.count = 1
        try world.set(Fault(id: "cut", .close, when: piece, occurrence: once, stage: .requestBody, at: 1_000))
        let client = try await client(uploads)
        try await upload(client)
        await failed(client)
        #expect(try await ask(.head, "/v1/uploads/1").offset == "\(start + 1_000)")
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        #expect(try await image("img_upload_1") == photo)
        let journal = await world.journal(JournalFilter("PATCH", "/v1/uploads/*"))
        let cut = try #require(journal.first { !$0.faults.isEmpty })
        #expect(cut.status == nil && cut.faults == ["cut"])
        client.close()
    }

    @Test func `an upload that is cut at a byte and is none of a resumable one is not carried out`() async throws {
        let post = FaultMatch("POST", "/v1/posts")
        try world.set(Fault(.respond(CannedReply(status: 413)), when: post, stage: .requestBody, at: 5))
        let client = try RawClient(port: backend.port)
        let path = try #require(URL(string: world.url)).path
        try client.send(
            "POST \(path)/v1/posts HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dev-ana\r\n"
                + "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"text"
        )
        #expect(try await client.reply().status == 413)
        #expect(await client.isClosedByPeer())
        #expect(await world.journal(JournalFilter("POST", "/v1/posts")).first?.faults.count == 1)
    }

    @Test(arguments: [HTTPSource.UploadProtocol.ietf, .tus])
    func `an upload that the server has forgotten begins anew`(by uploads: HTTPSource.UploadProtocol) async throws {
        let client = try await client(uploads)
        pieces.allow(1)
        try await upload(client)
        await failed(client)
        let request = TransportRequest(
            method: .delete,
            url: world.url + "/v1/uploads/1",
            fields: [.authorization: "Bearer dev-ana"]
        )
        #expect(try await pieces.send(request).status == .noContent)
        pieces.allow(.max)
        client.cache.networkReturned()
        // This attempt finds that it is forgotten, and the next one begins anew.
        await failed(client, attempts: 2)
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        #expect(try await image("img_upload_2") == photo)
        client.close()
    }

    @Test func `progress is told, and a dropped upload leaves no copy`() async throws {
        let client = try await client()
        let told = SequenceRecorder(client.uploads)
        let gate = TransportGate()
        pieces.allow(1, thenHold: gate)
        let id = try await upload(client)
        _ = await told.wait { $0.last?[id]?.sent == 262_144 }
        #expect(told.elements.last?[id]?.total == photo.count)
        gate.open()
        _ = await told.wait { $0.last?.isEmpty ?? false }
        await failed(client)
        try client.cache.outbox.drop(id)
        try await reached { try copies.isEmpty }
        client.close()
    }

    /// A sign-out on a failing disk may remove the copies, and then not the outbox.
    @Test(arguments: [0, 1]) func `an upload whose copy has gone is rejected`(_ sent: Int) async throws {
        let client = try await client()
        pieces.allow(sent)
        try await upload(client)
        await failed(client)
        client.close()
        try FileManager.default.removeItem(atPath: scratch.path + "/store/" + #require(copies.first))
        let next = try await self.client()
        await reached { !next.cache.outbox.rejected.isEmpty || next.cache.outbox.entries.first?.error != nil }
        let rejection = next.cache.outbox.rejected.first?.rejection
        #expect(rejection?.code == .invalidArgument && rejection?.title.contains("copy of the file has gone") == true)
        next.close()
    }

    @Test func `a sign-out leaves no copy, nor anything else`() async throws {
        let client = try await client()
        pieces.allow(1)
        try await upload(client)
        await failed(client)
        #expect(try !copies.isEmpty)
        try await client.signOut()
        #expect(try copies.isEmpty)
        let left = try FileManager.default.contentsOfDirectory(atPath: scratch.path + "/store")
        #expect(left.isEmpty, "\(left)")
    }

    @Test func `a file that does not fit or cannot be read is refused, and nothing is written`() async throws {
        let client = try await client { $0.uploadBytesMaximum = 600_000 }
        let large = await #expect(throws: LarderError.self) { try await upload(client) }
        #expect(large?.code == .invalidArgument && large?.description.contains("600000 bytes") == true)
        let missing = await #expect(throws: LarderError.self) { try await upload(client, scratch.path + "/none") }
        #expect(missing?.code == .invalidArgument)
        #expect(client.cache.outbox.entries.isEmpty)
        #expect(try copies.isEmpty)
        client.close()
    }

    /// A request to the server: its status, and the offset that it states.
    private func ask(
        _ method: LarderHTTP.Method,
        _ path: String,
        _ body: [UInt8] = [],
        _ fields: Fields = Fields(),
        as user: String = "ana"
    ) async throws -> (status: Int, offset: String?) {
        var request = TransportRequest(method: method, url: world.url + path, fields: fields, body: body)
        request.fields.set(.authorization, "Bearer dev-\(user)")
        let reply = try await pieces.send(request)
        return (Int(reply.status.code), reply.fields["Upload-Offset"])
    }

    @Test func `the server tells its offset, and takes only what continues an upload and becomes a picture`()
        async throws
    {
        let piece: Fields = [.contentType: "application/partial-upload"]
        func part(_ offset: Int, isLast: Bool) -> Fields {
            var fields = piece
            fields.set("Upload-Offset", "\(offset)")
            fields.set("Upload-Complete", isLast ? "?1" : "?0")
            return fields
        }
        var begin: Fields = [.contentType: "image/png"]
        #expect(try await ask(.post, "/v1/photos", [1], [.contentType: "text/plain"]).status == 415)
        #expect(try await ask(.post, "/v1/photos", [1, 2, 3], begin).status == 422)
        begin.set("Upload-Complete", "?0")
        begin.set(.idempotencyKey, "k1")
        for _ in 0..<2 {
            let begun = try await ask(.post, "/v1/photos", Array(photo[..<100]), begin)
            #expect(begun.status == 201 && begun.offset == "100", "The second is a replay.")
        }
        #expect(try await ask(.head, "/v1/uploads/1").offset == "100")
        let people = try await pieces.send(TransportRequest(url: world.url + "/v1/profiles?limit=5")).body
        let handles = try JSONParser.parse(people)["items"]?.array?.compactMap { $0["handle"]?.string } ?? []
        let other = try #require(handles.first { $0 != "ana" })
        #expect(try await ask(.head, "/v1/uploads/1", as: other).status == 404)
        #expect(try await ask(.head, "/v1/uploads/2").status == 404, "The replay has begun none.")
        let gap = try await ask(.patch, "/v1/uploads/1", [1], part(200, isLast: false))
        #expect(gap.status == 409 && gap.offset == "100")
        let next = try await ask(.patch, "/v1/uploads/1", Array(photo[100..<300]), part(100, isLast: false))
        #expect(next.status == 204 && next.offset == "300")
        #expect(try await ask(.patch, "/v1/uploads/1", [], part(300, isLast: true)).status == 201)
        #expect(try await ask(.patch, "/v1/uploads/1", [], part(300, isLast: true)).status == 201)
        #expect(try await ask(.patch, "/v1/uploads/1", [1], part(300, isLast: true)).status == 409)
        #expect(try await ask(.delete, "/v1/uploads/1").status == 409)
        begin.set("Upload-Length", "99999999")
        begin.set(.idempotencyKey, "k2")
        #expect(try await ask(.post, "/v1/photos", [], begin).status == 413)
    }
}
