import Foundation
import LarderEngine
import LarderHTTP
import LarderTesting
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

/// Keeps the last content, and rejects what is larger than its limit.
private final class Receiver: ExchangeHandler {
    /// The number of complete requests with content.
    let bodies = Mutex(0)
    let last = Mutex<(body: [UInt8], type: String?, isChunked: Bool)>(([], nil, false))

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        if !request.body.isEmpty { bodies.withLock { $0 += 1 } }
        last.withLock {
            $0 = (request.body, request.fields[.contentType], request.fields.count(of: "transfer-encoding") > 0)
        }
        return Reply(status: .ok, body: .bytes(Array("\(request.body.count)".utf8)))
    }

    func rejected(_ rejection: Rejection) -> Reply {
        Reply(status: rejection.status, body: .bytes(Array(rejection.detail.utf8)))
    }

    func finished(_ record: ExchangeRecord) {}
}

/// Pieces of a body, counted when they are asked for.
private struct Blocks: AsyncSequence, Sendable {
    struct Iterator: AsyncIteratorProtocol {
        let blocks: Blocks
        var left: Int

        mutating func next() async throws -> [UInt8]? {
            guard left > 0 else { return nil }
            left -= 1
            blocks.count.withLock { $0 += 1 }
            return blocks.block
        }
    }

    final class Count: Sendable {
        private let state = Mutex(0)
        func withLock<Result>(_ body: (inout sending Int) -> sending Result) -> Result { state.withLock(body) }
    }

    let block: [UInt8]
    let number: Int
    let count = Count()

    func makeAsyncIterator() -> Iterator { Iterator(blocks: self, left: number) }
}

@Suite("Uploads, end to end", .oneMinute)
struct UploadTests {
    private static let block = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 131 &+ $0 >> 8) }
    private static let number = 20

    private func serve(
        bodyBytesMaximum: Int = 24 << 20,
        _ body: (Receiver, String) async throws -> Void
    ) async throws {
        let receiver = Receiver()
        var configuration = ServerConfiguration()
        configuration.monotonic = ManualClock()
        configuration.bodyBytesMaximum = bodyBytesMaximum
        let server = try HTTPServer(configuration, handler: receiver)
        let outcome: Result<Void, any Error>
        do {
            try await body(receiver, "http://127.0.0.1:\(server.address.port)/upload")
            outcome = .success(())
        } catch { outcome = .failure(error) }
        await server.stop(grace: .zero)
        try outcome.get()
    }

    /// Whether a number of blocks begins at an offset. By `Data`, which compares with memcmp.
    private func isWhole(_ body: [UInt8], _ number: Int, from start: Int = 0) -> Bool {
        let (data, block) = (Data(body), Data(Self.block))
        return (0..<number).allSatisfy { index in
            let offset = start + index * block.count
            return data[offset..<offset + block.count] == block
        }
    }

    private func file() throws -> (ScratchDirectory, String) {
        let directory = try ScratchDirectory()
        let path = directory.path + "/video"
        var data = Data()
        for _ in 0..<Self.number { data.append(contentsOf: Self.block) }
        try data.write(to: URL(fileURLWithPath: path))
        return (directory, path)
    }

    @Test func `a file of 20 MB arrives complete, with its progress`() async throws {
        let (directory, path) = try file()
        try await serve { receiver, url in
            let sent = Mutex<[Int]>([])
            var body = RequestBody(file: path, contentType: "video/mp4")
            body.onProgress = { report in sent.withLock { $0.append(report.sent) } }
            var request = TransportRequest(method: .put, url: url)
            request.upload = body
            let reply = try await makeTransport().send(request)
            #expect(String(decoding: reply.body, as: UTF8.self) == "20000000")
            let last = receiver.last.withLock { $0 }
            #expect(last.body.count == 20_000_000 && isWhole(last.body, Self.number))
            #expect(last.type == "video/mp4" && !last.isChunked)
            let reports = sent.withLock { $0 }
            #expect(reports.last == 20_000_000 && reports == reports.sorted() && reports.count >= 306)
        }
        withExtendedLifetime(directory) {}
    }

    @Test func `a form of a stream, a file and a value arrives complete`() async throws {
        let directory = try ScratchDirectory()
        try Data("small".utf8).write(to: URL(fileURLWithPath: directory.path + "/f"))
        try await serve { receiver, url in
            var form = RequestBody.Form()
            form.add("blocks", RequestBody(Blocks(block: Self.block, number: 4)), filename: "blocks")
            form.add("file", RequestBody(file: directory.path + "/f"), filename: "f")
            form.add("caption", "x")
            var request = TransportRequest(method: .post, url: url)
            request.upload = form.body
            let reply = try await makeTransport().send(request)
            #expect(reply.status == .ok)
            let last = receiver.last.withLock { $0 }
            #expect(last.type == "multipart/form-data; boundary=\(form.boundary)")
            #expect(last.isChunked)
            let head = Array("Content-Type: application/octet-stream\r\n\r\n".utf8)
            let start = try #require((0..<500).first { last.body[$0...].starts(with: head) }) + head.count
            #expect(isWhole(last.body, 4, from: start))
            #expect(String(decoding: last.body.suffix(300), as: UTF8.self).contains("small\r\n--\(form.boundary)\r\n"))
            #expect(last.body.suffix(4).elementsEqual(Array("--\r\n".utf8)))
        }
    }

    @Test func `a body beyond the server's limit is answered with 413 while it is sent, and is not read on`()
        async throws
    {
        try await serve(bodyBytesMaximum: 2 << 20) { _, url in
            let transport = makeTransport()
            let blocks = Blocks(block: Self.block, number: 2_000)
            for body in [RequestBody(blocks), RequestBody(blocks, length: 2_000_000_000)] {
                var request = TransportRequest(method: .post, url: url)
                request.upload = body
                let reply = try await transport.send(request)
                #expect(reply.status.code == 413)
                #expect(blocks.count.withLock { $0 } < 200)
            }
            let next = try await transport.send(TransportRequest(url: url))
            #expect(next.status == .ok)
        }
    }

    @Test func `an abandoned upload does not reach the handler as a complete request`() async throws {
        try await serve { receiver, url in
            let ended = Pending<Bool>()
            let begun = Pending<Bool>()
            let transport = makeTransport()
            // Only the task holds the stream: its producer is told when the transport drops it, also between two pieces.
            func send() -> Task<TransportResponse, any Error> {
                let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
                continuation.onTermination = { _ in ended.finish(true) }
                for _ in 0..<3 { continuation.yield(Self.block) }
                var body = RequestBody(stream)
                body.onProgress = { if $0.sent >= 2_000_000 { begun.finish(true) } }
                var request = TransportRequest(method: .post, url: url)
                request.upload = body
                return Task { [request] in try await transport.send(request) }
            }
            let sending = send()
            _ = await begun.value(ifCancelled: false)
            sending.cancel()
            await #expect(throws: TransportError.self) { _ = try await sending.value }
            #expect(await ended.value(ifCancelled: false))
            let next = try await transport.send(TransportRequest(url: url))
            #expect(next.status == .ok)
            #expect(receiver.bodies.withLock { $0 } == 0)
        }
    }
}
