import Foundation
import LarderCoding
import LarderEngine
import LarderServer
import LarderTime
import TestSupport
import Testing

@Suite("Cached reads", .oneMinute)
struct CachedReadTests {
    /// The requests that are repeated byte for byte.
    private static let reads: [(target: String, handle: String?)] = [
        ("/v1/feed?limit=5", nil), ("/v1/feed?limit=5", "ana"), ("/v1/feed?limit=5", "person2"),
        ("/v1/posts/post_60", "ana"),
        ("/v1/profiles/user_1", nil), ("/v1/accounts", "ana"), ("/v1/conversations", "ana"), ("/v1/me", "ana"),
        ("/v1/feed/pages?page=1&limit=5", nil),
    ]

    @Test(arguments: seeds(3))
    func `runs with and without the response cache have equal bytes and journals`(seed: UInt64)
        async throws
    {
        // Two equal worlds; one of them caches no replies.
        let kept = try Scene()
        let anew = try Scene { $0.settings.responseCacheBytesMaximum = 0 }
        var generator = SeededGenerator(seed: seed)
        var tags: [String: String] = [:]
        // The two worlds have different secrets.
        var tokens = ["ana", "ana"]
        for step in 0..<300 {
            let before = generator
            var replies: [RawReply] = []
            var seen: (read: String, tag: String?) = ("", nil)
            for (scene, token) in zip([kept, anew], tokens) {
                generator = before
                let read = Self.reads.randomElement(using: &generator) ?? ("", nil)
                let handle = read.handle == "ana" ? token : read.handle
                switch Int.random(in: 0..<24, using: &generator) {
                case 0:
                    let method = Bool.random(using: &generator) ? "PUT" : "DELETE"
                    replies.append(try await scene.ask(method, "/v1/posts/post_60/like", as: token))
                case 1: replies.append(try await scene.ask("POST", "/v1/posts", as: token, "{\"text\":\"at \(step)\"}"))
                case 2:
                    let profile = try await scene.ask("GET", "/v1/me", as: token)
                    let fields = ["If-Match": profile.field("ETag") ?? ""]
                    replies.append(
                        try await scene.ask("PATCH", "/v1/me", as: token, "{\"bio\":\"at \(step)\"}", fields)
                    )
                case 3:
                    // Signs out and in again: replies for the old token become invalid.
                    if token != "ana" {
                        replies.append(try await scene.ask("DELETE", "/v1/sessions/current", as: token))
                    }
                    let body = #"{"handle":"ana","password":"larder"}"#
                    replies.append(try await scene.ask("POST", "/v1/sessions", as: nil, body))
                case 4:
                    // A sent reply is in the journal already, with the time of its end.
                    _ = await scene.backend.main.journal()
                    scene.clock.advance(by: .seconds(Int.random(in: 1...2_000, using: &generator)))
                case 5:
                    let fault = Fault(id: "f", .respond(CannedReply(status: 503)), when: FaultMatch("GET", "/v1/feed"))
                    try scene.backend.main.set(fault)
                case 6: scene.backend.main.removeFaults()
                case 7: scene.backend.main.skewDates(of: "*", by: .seconds(step % 2 == 0 ? 60 : 0))
                case 8: try scene.backend.main.set(Gate(id: "g", when: FaultMatch("GET", "/nowhere")))
                case 9: scene.backend.main.removeGate("g")
                case 10...12:
                    var fields = tags[read.target + (read.handle ?? "")].map { ["If-None-Match": $0] } ?? [:]
                    if Bool.random(using: &generator) { fields["Accept-Encoding"] = "gzip" }
                    replies.append(try await scene.ask("GET", read.target, as: handle, nil, fields))
                case 13...16:
                    let fields = ["Accept-Encoding": Bool.random(using: &generator) ? "gzip" : "deflate, gzip;q=0.5"]
                    replies.append(try await scene.ask("GET", read.target, as: handle, nil, fields))
                default: replies.append(try await scene.ask("GET", read.target, as: handle))
                }
                seen = (read.target + (read.handle ?? ""), replies.last?.field("ETag"))
            }
            if let tag = seen.tag { tags[seen.read] = tag }
            let half = replies.count / 2
            for (one, other) in zip(replies[..<half], replies[half...]) {
                let isSame = one.head == other.head && Self.withoutSecrets(one) == Self.withoutSecrets(other)
                #expect(isSame, "step \(step), seed \(seed)")
            }
            let granted = replies.compactMap { try? $0.json["accessToken"]?.string }
            if granted.count == 2 { tokens = granted }
        }
        let journals = [await kept.backend.main.journal(), await anew.backend.main.journal()]
        let told = journals.map { entries in
            entries.map {
                "\($0) \($0.connection) \($0.exchange) \($0.at) \($0.bytesSent) \($0.replyField("ETag") ?? "")"
            }
        }
        #expect(told[0] == told[1], "seed \(seed)")
        await kept.backend.stop()
    }

    /// A body with placeholders of the same length for the tokens that it grants.
    private static func withoutSecrets(_ reply: RawReply) -> String {
        var text = String(decoding: reply.body, as: UTF8.self)
        for name in ["accessToken", "refreshToken"] {
            guard let secret = try? reply.json[name]?.string else { continue }
            text = text.replacingOccurrences(of: secret, with: String(repeating: "*", count: secret.count))
        }
        return text
    }

    @Test func `a token that expires between two identical requests is rejected`() async throws {
        let scene = try Scene()
        let session = try await scene.ask("POST", "/v1/sessions", as: nil, #"{"handle":"ana","password":"larder"}"#)
            .json
        let token = try #require(session["accessToken"]?.string)
        for _ in 0..<4 { #expect(try await scene.ask("GET", "/v1/me", as: token).status == 200) }
        let seconds = try #require(session["expiresIn"]?.integer)
        scene.clock.advance(by: .seconds(seconds))
        let late = try await scene.ask("GET", "/v1/me", as: token)
        #expect(late.status == 401 && late.problem == "token-expired")
    }

    @Test func `a signed-out token is rejected for a repeated request`() async throws {
        let scene = try Scene()
        let session = try await scene.ask("POST", "/v1/sessions", as: nil, #"{"handle":"ana","password":"larder"}"#)
            .json
        let token = try #require(session["accessToken"]?.string)
        for _ in 0..<4 { #expect(try await scene.ask("GET", "/v1/me", as: token).status == 200) }
        #expect(try await scene.ask("DELETE", "/v1/sessions/current", as: token).status == 204)
        let late = try await scene.ask("GET", "/v1/me", as: token)
        #expect(late.status == 401 && late.problem == "invalid-token")
    }
}
