import Foundation
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Request bodies", .oneMinute) struct RequestBodyTests {
    private struct Broken: Error {}

    private func code(_ body: () async throws(TransportError) -> Void) async -> ErrorCode<TransportError>? {
        do throws(TransportError) {
            try await body()
            return nil
        } catch { return error.code }
    }

    @Test func `a file is read in pieces of 64 KiB, with its size as the length`() async throws {
        let directory = try ScratchDirectory()
        let bytes = (0..<200_001).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try Data(bytes).write(to: URL(fileURLWithPath: directory.path + "/f"))
        let body = RequestBody(file: directory.path + "/f")
        #expect(try await body.length() == 200_001)
        var sizes: [Int] = []
        _ = try await body.write(200_001) { piece, _ in
            sizes.append(piece.count)
            return true
        }
        #expect(sizes == [65_536, 65_536, 65_536, 3_393])
        #expect(try await body.written(200_001) == bytes, "a file can be read again")
    }

    @Test func `a missing file, a directory and a file of another size fail the body`() async throws {
        let directory = try ScratchDirectory()
        #expect(
            await code { () throws(TransportError) in _ = try await RequestBody(file: "/nowhere").length() }
                == .bodyFailed
        )
        #expect(
            await code { () throws(TransportError) in _ = try await RequestBody(file: directory.path).length() }
                == .bodyFailed
        )
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: directory.path + "/f"))
        let body = RequestBody(file: directory.path + "/f")
        for length in [2, 4] {
            #expect(await code { () throws(TransportError) in _ = try await body.written(length) } == .bodyFailed)
        }
    }

    @Test(arguments: [["abc", "d"], ["abcd", "e"], ["abcde"], ["ab"], []])
    func `a body of another length than stated is never complete`(texts: [String]) async {
        let stated = 4
        let total = texts.joined().utf8.count
        let body = RequestBody(pieces(texts), length: stated)
        let accepted = Mutex((bytes: 0, isComplete: false))
        let failure = await code { () throws(TransportError) in
            _ = try await body.write(stated) { piece, isLast in
                accepted.withLock { ($0.bytes, $0.isComplete) = ($0.bytes + piece.count, isLast) }
                return true
            }
        }
        let isRight = total == stated
        #expect(failure == (isRight ? nil : .bodyFailed))
        #expect(accepted.withLock { $0.isComplete } == isRight)
        #expect(isRight || accepted.withLock { $0.bytes } < stated)
    }

    @Test func `a single sequence can be sent once, and one that is made anew again`() async throws {
        let once = RequestBody(pieces(["a", "b"]))
        #expect(!once.isReplayable && once.canBeSent)
        #expect(try await once.written(nil) == Array("ab".utf8))
        #expect(!once.canBeSent)
        #expect(await code { () throws(TransportError) in _ = try await once.written(nil) } == .bodyNotReplayable)
        let again = RequestBody(replaying: { pieces(["a", "b"]) })
        for _ in 0..<2 { #expect(try await again.written(nil) == Array("ab".utf8) && again.canBeSent) }
    }

    @Test func `a failure of the sequence is that of the body, with its reason`() async {
        do throws(TransportError) {
            _ = try await RequestBody(pieces(["a"], failing: Broken())).written(nil)
            Issue.record("no error")
        } catch {
            #expect(error.code == .bodyFailed && error.description.contains("Broken"))
        }
    }

    @Test func `progress is reported per piece, and begins at zero in a new attempt`() async throws {
        let reports = Mutex<[RequestBody.Progress]>([])
        var body = RequestBody(Array(repeating: 1, count: 150_000))
        body.onProgress = { report in reports.withLock { $0.append(report) } }
        for _ in 0..<2 { _ = try await body.written(150_000) }
        let expected = [65_536, 131_072, 150_000]
        #expect(reports.withLock { $0 }.map(\.sent) == expected + expected)
        #expect(reports.withLock { $0 }.allSatisfy { $0.total == 150_000 })
        #expect(body.bytesSent == 150_000)
    }

    @Test func `a form has its parts between boundaries, names escaped and its length known`() async throws {
        let directory = try ScratchDirectory()
        try Data("jpeg".utf8).write(to: URL(fileURLWithPath: directory.path + "/f"))
        var random = SeededGenerator(seed: 7)
        var form = RequestBody.Form(random: &random)
        form.add("say \"hi\"\r\nX: y", "at the lake \u{e9}")
        form.add("photo", RequestBody(file: directory.path + "/f", contentType: "image/jpeg"), filename: "a\".jpg")
        form.add("raw", RequestBody(replaying: { pieces(["12", "3"]) }), filename: "b")
        var known = RequestBody.Form(random: &random)
        known.add("n", RequestBody(replaying: { pieces(["12", "3"]) }))
        #expect(form.boundary != known.boundary && form.boundary.count == 39)
        let text = """
            --\(form.boundary)\r
            Content-Disposition: form-data; name="say %22hi%22%0D%0AX: y"\r
            \r
            at the lake \u{e9}\r
            --\(form.boundary)\r
            Content-Disposition: form-data; name="photo"; filename="a%22.jpg"\r
            Content-Type: image/jpeg\r
            \r
            jpeg\r
            --\(form.boundary)\r
            Content-Disposition: form-data; name="raw"; filename="b"\r
            Content-Type: application/octet-stream\r
            \r
            123\r
            --\(form.boundary)--\r

            """
        let body = form.body
        #expect(body.contentType == "multipart/form-data; boundary=\(form.boundary)")
        #expect(try await body.length() == nil, "one part has no length")
        for _ in 0..<2 { #expect(try await body.written(nil) == Array(text.utf8)) }
    }

    @Test func `a form has a length if each part has one, and can be sent again if each part can`() async throws {
        var form = RequestBody.Form()
        form.add("a", "1")
        form.add("b", RequestBody(pieces(["xyz"]), length: 3))
        let body = form.body
        let length = try #require(try await body.length())
        #expect(!body.isReplayable)
        let bytes = try #require(try await body.written(length))
        #expect(bytes.count == length)
        #expect(await code { () throws(TransportError) in _ = try await body.written(length) } == .bodyNotReplayable)
        form.add("c", RequestBody(pieces(["xyz"]), length: 4))
        let wrong = form.body
        let stated = try await wrong.length()
        #expect(await code { () throws(TransportError) in _ = try await wrong.written(stated) } == .bodyNotReplayable)
    }
}
