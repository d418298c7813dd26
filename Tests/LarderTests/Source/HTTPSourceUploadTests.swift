import LarderEvents
import LarderHTTP
import LarderResources
import LarderTesting
import LarderTransport
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("HTTP source: uploads", .oneMinute)
struct HTTPSourceUploadTests {
    private struct Stored: Codable, Sendable, Hashable {
        var id: Int
    }

    private final class Renewing: HTTPSource.Authorizer {
        private let token = Mutex("old")
        let renewals = Mutex(0)

        func authorize(_ request: inout TransportRequest) async throws(LarderError) {
            request.fields.set(.authorization, "Bearer \(token.withLock { $0 })")
        }

        func renew(after request: TransportRequest) async throws(LarderError) -> Bool {
            renewals.withLock { $0 += 1 }
            token.withLock { $0 = "new" }
            return true
        }
    }

    private func stream(_ text: String) -> AsyncStream<[UInt8]> {
        AsyncStream { continuation in
            continuation.yield(Array(text.utf8))
            continuation.finish()
        }
    }

    private func scripted() -> ScriptedTransport {
        ScriptedTransport { request, _ throws(TransportError) in
            request.fields[.authorization] == "Bearer old"
                ? .text("", status: .unauthorized)
                : .text(#"{"id":7}"#, fields: [.contentType: "application/json"])
        }
    }

    @Test func `a form is sent with its content type, and the reply is decoded`() async throws {
        let transport = ScriptedTransport(script: [.text(#"{"id":7}"#, fields: [.contentType: "application/json"])])
        var form = RequestBody.Form()
        form.add("caption", "x")
        let source = HTTPSource("http://h", transport: transport)
        let reply = try await source.send(.post, "/photos", upload: form.body, as: Stored.self)
        #expect(reply.value == Stored(id: 7))
        let request = try #require(transport.requests.first)
        #expect(request.fieldsWithContentType[.contentType] == "multipart/form-data; boundary=\(form.boundary)")
        #expect(request.method == .post && request.url == "http://h/photos" && request.body.isEmpty)
        #expect(
            transport.uploads.count == 1 && String(decoding: transport.uploads[0], as: UTF8.self).contains("caption")
        )
    }

    @Test func `a body that can be replayed is sent again after the renewal of a 401`() async throws {
        let transport = scripted()
        let source = HTTPSource("http://h", transport: transport, authorizer: Renewing())
        let body = RequestBody(replaying: { self.stream("abc") })
        try await source.send(.put, "/f", upload: body)
        #expect(transport.uploads == [Array("abc".utf8), Array("abc".utf8)])
    }

    @Test func `any other body is sent once; the credentials are renewed and the error says why`() async throws {
        let transport = scripted()
        let renewing = Renewing()
        let source = HTTPSource("http://h", transport: transport, authorizer: renewing)
        do {
            try await source.send(.put, "/f", upload: RequestBody(stream("abc")))
            Issue.record("no error")
        } catch {
            #expect(error.code == .unauthorized && error.status == 401)
            #expect((error.cause as? TransportError)?.code == .bodyNotReplayable)
        }
        #expect(transport.uploads.count == 1 && renewing.renewals.withLock { $0 } == 1)
        try await source.send(.put, "/f", upload: RequestBody(stream("abc")))
        #expect(transport.uploads.count == 2)
    }

    @Test func `a body that cannot be read again after a lost copy leaves the outcome unknown`() async throws {
        let transport = ScriptedTransport { request, number throws(TransportError) in
            guard request.fields[.authorization] == "Bearer old" else {
                throw TransportError(.bodyFailed, "The file has changed.")
            }
            LostCopies.current?.note()
            return .text("", status: .unauthorized)
        }
        let source = HTTPSource("http://h", transport: transport, authorizer: Renewing())
        let body = RequestBody(replaying: { self.stream("abc") })
        let error = await #expect(throws: LarderError.self) { try await source.send(.put, "/f", upload: body) }
        #expect(error?.mayHaveBeenCarriedOut == true)
    }

    @Test func `a file that cannot be read is an invalid argument`() async throws {
        let source = HTTPSource("http://h", transport: ScriptedTransport(script: [.text("")]))
        do {
            try await source.send(.put, "/f", upload: RequestBody(file: "/nowhere"))
            Issue.record("no error")
        } catch { #expect(error.code == .invalidArgument && error.description.contains("/nowhere")) }
    }
}
