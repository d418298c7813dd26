import Foundation
import Larder
import LarderTesting
import NewsKit
import Synchronization

/// The backend of the tests, behind a `ScriptedTransport`: no sockets, no waiting.
final class FakeNews: Sendable {
    struct State {
        var revisions: [Int: Int] = [:]
        var articleCount = 45
        var bookmarks: Set<Int> = []
        var comments: [String: String] = [:]
        var access: Set<String> = []
        var refresh: Set<String> = []
        var grants = 0
        /// Requests that are answered in another way, by method and path.
        var instead: [String: ScriptedTransport.Reply] = [:]
        var log: [String] = []
    }

    let state = Mutex(State())

    var log: [String] { state.withLock { $0.log } }

    func count(_ line: String) -> Int { log.count { $0 == line } }

    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

    func transport() -> ScriptedTransport { ScriptedTransport { request, _ in self.reply(to: request) } }

    private func reply(to request: TransportRequest) -> ScriptedTransport.Reply {
        state.withLock { state in
            let target = request.url.replacing("http://news.test", with: "")
            let line = "\(request.method) \(target)"
            state.log.append(line)
            if let reply = state.instead[line] { return reply }
            return Self.reply(request, target, &state)
        }
    }

    private static func reply(
        _ request: TransportRequest,
        _ target: String,
        _ state: inout State
    ) -> ScriptedTransport.Reply {
        let parts = target.split(separator: "?")[0].split(separator: "/").map(String.init)
        let isSignedIn = state.access.contains(request.fields[.authorization] ?? "")
        switch (request.method, parts.first, parts.count) {
        case (.post, "token", 1): return grant(String(decoding: request.body, as: UTF8.self), &state)
        case (.get, "articles", 1): return page(target, state)
        case (.get, "articles", 2):
            let id = Int(parts[1]) ?? 0
            let fields: Fields = ["Cache-Control": "max-age=60", "ETag": "\"\(state.revisions[id, default: 1])\""]
            return conditional(request, json(article(id, state, withText: true)), fields)
        case (.get, "almanac", 1):
            return conditional(request, #"{"sunrise":"06:12"}"#, ["Last-Modified": "Thu, 01 Jan 2015 00:00:00 GMT"])
        case _ where !isSignedIn: return .text(#"{"error":"invalid_token"}"#, status: .unauthorized, fields: isJSON)
        case (.get, "me", 1):
            return .text(
                #"{"name":"Ana","card":"4111-1111"}"#,
                fields: ["Content-Type": "application/json", "Cache-Control": "no-store"]
            )
        case (.get, "bookmarks", 1):
            return .text(
                "\(state.bookmarks.sorted())",
                fields: ["Content-Type": "application/json", "Cache-Control": "no-cache"]
            )
        case (.put, "articles", 3), (.delete, "articles", 3):
            let id = Int(parts[1]) ?? 0
            if request.method == .put { state.bookmarks.insert(id) } else { state.bookmarks.remove(id) }
            return ScriptedTransport.Reply(status: .noContent)
        case (.post, "articles", 3):
            let key = request.fields["Idempotency-Key"] ?? ""
            state.comments[key] = parts[1]
            return .text(#"{"id":1,"article_id":\#(parts[1]),"text":"hello"}"#, status: .created, fields: isJSON)
        default: return .text(#"{"error":"not found"}"#, status: .notFound, fields: isJSON)
        }
    }

    private static let isJSON: Fields = ["Content-Type": "application/json"]

    private static func article(_ id: Int, _ state: State, withText: Bool) -> [String: Any] {
        var article: [String: Any] = [
            "id": id, "title": "Story \(id)", "author_name": "Ana", "published_at": "2026-01-01T00:00:00Z",
            "revision": state.revisions[id, default: 1],
        ]
        if withText { article["body_text"] = "Text \(id)" }
        return article
    }

    private static func json(_ value: Any) -> String {
        // The values of this file are valid JSON.
        String(
            decoding: (try? JSONSerialization.data(withJSONObject: value, options: .sortedKeys)) ?? Data(),
            as: UTF8.self
        )
    }

    private static func page(_ target: String, _ state: State) -> ScriptedTransport.Reply {
        let items = URLComponents(string: target)?.queryItems ?? []
        let number = items.first { $0.name == "page" }.flatMap { $0.value }.flatMap(Int.init) ?? 1
        let ids = (1...state.articleCount).reversed().dropFirst((number - 1) * 20).prefix(20)
        var fields = isJSON
        fields.set("Cache-Control", "max-age=60")
        if ids.last ?? 1 > 1 { fields.set("Link", "</articles?page=\(number + 1)&per_page=20>; rel=\"next\"") }
        return .text(json(ids.map { article($0, state, withText: false) }), fields: fields)
    }

    private static func conditional(
        _ request: TransportRequest,
        _ text: String,
        _ fields: Fields
    ) -> ScriptedTransport.Reply {
        let tag = fields["ETag"]
        let date = fields["Last-Modified"]
        if tag != nil, request.fields["If-None-Match"] == tag {
            return ScriptedTransport.Reply(status: .notModified, fields: fields)
        }
        if date != nil, request.fields["If-Modified-Since"] == date {
            return ScriptedTransport.Reply(status: .notModified, fields: fields)
        }
        var fields = fields
        fields.set("Content-Type", "application/json")
        return .text(text, fields: fields)
    }

    private static func grant(_ form: String, _ state: inout State) -> ScriptedTransport.Reply {
        let token = form.split(separator: "refresh_token=").last.map(String.init) ?? ""
        let isGranted = form.contains("password=news") || state.refresh.remove(token) != nil
        guard isGranted else { return .text(#"{"error":"invalid_grant"}"#, status: .badRequest, fields: isJSON) }
        state.grants += 1
        state.access.insert("Bearer access-\(state.grants)")
        state.refresh.insert("refresh-\(state.grants)")
        let grant: [String: Any] = [
            "access_token": "access-\(state.grants)", "refresh_token": "refresh-\(state.grants)", "expires_in": 3600,
        ]
        return .text(json(grant), fields: isJSON)
    }
}
