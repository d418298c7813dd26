import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Uploads", .oneMinute)
struct UploadServerTests {
    private static let beginning = ["Content-Type": "image/png", "Upload-Complete": "?0"]

    private static func piece(_ offset: Int, isLast: Bool? = nil) -> [String: String] {
        var fields = [
            "Content-Type": "application/partial-upload", "Upload-Offset": "\(offset)", "Content-Length": "0",
        ]
        if let isLast { fields["Upload-Complete"] = isLast ? "?1" : "?0" }
        return fields
    }

    @Test func `uploads that were abandoned are gone after a day, and do not count any more`() async throws {
        let scene = try Scene()
        for number in 1...16 {
            let begun = try await scene.ask("POST", "/v1/photos", nil, Self.beginning)
            #expect(begun.status == 201 && begun.field("Location") == "/v1/uploads/\(number)")
        }
        #expect(try await scene.ask("POST", "/v1/photos", nil, Self.beginning).status == 429)
        scene.clock.advance(by: .seconds(86_401))
        #expect(try await scene.ask("HEAD", "/v1/uploads/1").status == 404)
        #expect(try await scene.ask("PATCH", "/v1/uploads/1", nil, Self.piece(0, isLast: false)).status == 404)
        let begun = try await scene.ask("POST", "/v1/photos", nil, Self.beginning)
        #expect(begun.status == 201 && begun.field("Location") == "/v1/uploads/17")
    }

    @Test func `the fields of an upload are those of the draft`() async throws {
        let scene = try Scene()
        var beginning = Self.beginning
        beginning["Upload-Offset"] = "0"
        beginning["Upload-Length"] = "1"
        let begun = try await scene.ask("POST", "/v1/photos", nil, beginning)
        #expect(begun.status == 201 && begun.field("Location") == "/v1/uploads/1")
        #expect(try await scene.ask("PATCH", "/v1/uploads/1", nil, Self.piece(0)).status == 400)
        // A piece beyond the length ends the upload.
        try scene.client.send(
            "PATCH /v1/uploads/1 HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer dev-ana\r\nContent-Length: 2\r\n"
                + "Content-Type: application/partial-upload\r\nUpload-Offset: 0\r\nUpload-Complete: ?0\r\n\r\nab"
        )
        #expect(try await scene.client.reply().status == 413)
        #expect(try await scene.ask("HEAD", "/v1/uploads/1").status == 404)
    }

    @Test func `OPTIONS says which tus is served, and another version is rejected unprocessed`() async throws {
        let scene = try Scene()
        let upload = ["Tus-Resumable": "1.0.0", "Upload-Length": "4", "Upload-Metadata": "filetype aW1hZ2UvcG5n"]
        #expect(try await scene.ask("POST", "/v1/photos", nil, upload).status == 201)
        for path in ["/v1/photos", "/v1/uploads/1"] {
            // A server must ignore the version here (tus 1.0, Tus-Resumable).
            let options = try await scene.ask("OPTIONS", path, nil, ["Tus-Resumable": "0.2.2"])
            #expect(options.status == 204 && options.field("Tus-Resumable") == "1.0.0")
            #expect(options.field("Tus-Version") == "1.0.0" && options.field("Tus-Extension") == "creation")
            #expect(options.field("Tus-Max-Size") == "16777216" && options.field("Allow")?.contains("OPTIONS") == true)
        }
        #expect(try await scene.ask("OPTIONS", "/v1/feed").field("Tus-Version") == nil)
        var other = upload
        other["Tus-Resumable"] = "0.2.2"
        for (method, path) in [("POST", "/v1/photos"), ("HEAD", "/v1/uploads/1"), ("DELETE", "/v1/uploads/1")] {
            let reply = try await scene.ask(method, path, nil, other)
            #expect(reply.status == 412 && reply.field("Tus-Version") == "1.0.0", "\(method)")
        }
        other["Upload-Offset"] = "0"
        other["Content-Type"] = "application/offset+octet-stream"
        #expect(try await scene.ask("PATCH", "/v1/uploads/1", nil, other).status == 412)
        let state = try await scene.ask("HEAD", "/v1/uploads/1", nil, ["Tus-Resumable": "1.0.0"])
        #expect(state.status == 204 && state.field("Upload-Offset") == "0")
        #expect(try await scene.ask("HEAD", "/v1/uploads/2").status == 404, "Nothing was begun.")
        let unknown = try await scene.ask("HEAD", "/v1/uploads/2", nil, ["Tus-Resumable": "1.0.0"])
        #expect(unknown.status == 404 && unknown.field("Tus-Resumable") == "1.0.0")
        let removed = try await scene.ask("DELETE", "/v1/uploads/1", nil, ["Tus-Resumable": "1.0.0"])
        #expect(removed.status == 204 && removed.field("Tus-Resumable") == "1.0.0")
    }

    @Test func `the rejection of a piece beyond the length states the version of tus`() async throws {
        let scene = try Scene()
        let tus = ["Tus-Resumable": "1.0.0"]
        let beginning = tus.merging(["Upload-Length": "1", "Upload-Metadata": "filetype aW1hZ2UvcG5n"]) { $1 }
        #expect(try await scene.ask("POST", "/v1/photos", nil, beginning).status == 201)
        try scene.client.send(
            "PATCH /v1/uploads/1 HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer dev-ana\r\nContent-Length: 2\r\n"
                + "Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\nTus-Resumable: 1.0.0\r\n\r\nab"
        )
        let reply = try await scene.client.reply()
        #expect(reply.status == 413 && reply.field("Tus-Resumable") == "1.0.0")
        #expect(try await scene.ask("HEAD", "/v1/uploads/1", nil, tus).status == 404)
    }

    @Test func `a photo whose beginning was cut is sent again under its idempotency key`() async throws {
        let stage = try Stage()
        var once = Fault.Occurrence()
        once.count = 1
        let photos = FaultMatch("POST", "/v1/photos")
        try stage.world.set(Fault(.close, when: photos, occurrence: once, stage: .requestBody, at: 1_000))
        // The head of a PNG of 640 × 480.
        var picture: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
        picture += [0, 0, 2, 128, 0, 0, 1, 224, 8, 2, 0, 0, 0]
        picture += [UInt8](repeating: 1, count: 5_000 - picture.count)
        func send() throws -> RawClient {
            let client = try stage.connect()
            let head =
                "POST /v1/photos HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer dev-ana\r\nIdempotency-Key: \"k\"\r\n"
                + "Content-Type: image/png\r\nUpload-Complete: ?1\r\nContent-Length: 5000\r\n\r\n"
            try client.send(Array(head.utf8) + picture)
            return client
        }
        #expect(await (try send()).readToEnd().bytes.isEmpty)
        #expect(try await send().reply().status == 201)
        #expect(try await send().reply().field("Idempotent-Replayed") == "true")
    }
}
