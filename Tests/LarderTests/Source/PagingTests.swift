import Larder
import LarderTesting
import SDKTestSupport
import TestSupport
import Testing

private struct Word: CacheEntity, Hashable {
    static let entityType = "word"
    var id: String
}

private struct Envelope: Decodable, Sendable {
    var data: [Word]
    var token: String?
}

/// Seven words, newest first, in pages of three by every kind of paging.
private func server(prefix: String = "/api", otherOrigin: Bool = false) -> ScriptedTransport {
    let words = (1...7).reversed().map { "{\"id\":\"\($0)\"}" }
    return ScriptedTransport { request, _ throws(TransportError) in
        func parameter(_ name: String) -> Int? {
            request.url.split(separator: "?").last?.split(separator: "&")
                .first { $0.hasPrefix(name + "=") }.flatMap { Int($0.dropFirst(name.count + 1)) }
        }
        let start =
            parameter("offset") ?? parameter("cursor") ?? parameter("from") ?? ((parameter("page") ?? 1) - 1) * 3
        let items = "[\(words.dropFirst(start).prefix(3).joined(separator: ","))]"
        var fields: Fields = [.contentType: "application/json"]
        let next = start + 3 < 7 ? start + 3 : nil
        if request.url.contains("/linked"), let next {
            let target = otherOrigin ? "http://other/linked?from=\(next)" : "linked?from=\(next)&a=b,c"
            fields.add(.link, "<linked>; rel=first, <\(target)>; rel=\"next\"")
        }
        guard request.url.contains("/envelope") else { return .text(items, fields: fields) }
        return .text("{\"data\":\(items)\(next.map { ",\"token\":\"\($0)\"" } ?? "")}", fields: fields)
    }
}

@Suite("HTTPSource: pages", .oneMinute)
struct PagingTests {
    private let scene = CacheScene()

    @Test(arguments: ["envelope", "linked", "numbered", "offset"])
    func `a timeline pages to its end`(kind: String) async throws {
        let cache = try scene.cache()
        let transport = server()
        let source = HTTPSource("http://server/api", transport: transport)
        let words = PagedResource<Word>("words", pageSize: 3) { request in
            switch kind {
            case "envelope":
                try await source.page("/envelope", request, by: .cursor(items: \Envelope.data, next: \.token))
            case "linked": try await source.page("/linked", request, by: .links())
            case "numbered": try await source.page("/numbered", query: [("q", "a b")], request, by: .number())
            default: try await source.page("/offset", request, by: .offset())
            }
        }
        let timeline = cache.timeline(words)
        var snapshot = try await timeline.snapshot()
        #expect(snapshot.items.map(\.id) == ["7", "6", "5"])
        while try await timeline.loadOlder() == .more {}
        snapshot = try await timeline.snapshot()
        #expect(snapshot.items.map(\.id) == ["7", "6", "5", "4", "3", "2", "1"] && snapshot.hasReachedEnd)
        let urls = transport.requests.map { $0.url.dropFirst("http://server/api/".count) }
        switch kind {
        case "envelope":
            #expect(urls == ["envelope?limit=3", "envelope?limit=3&cursor=3", "envelope?limit=3&cursor=6"])
        case "linked": #expect(urls == ["linked?per_page=3", "linked?from=3&a=b,c", "linked?from=6&a=b,c"])
        case "numbered":
            #expect(urls == (1...4).map { "numbered?q=a%20b&per_page=3&page=\($0)" })
        default: #expect(urls == [0, 3, 6, 7].map { "offset?limit=3&offset=\($0)" })
        }
    }

    @Test(arguments: ["linked", "numbered", "offset"])
    func `pages that have no names for newer items reject such requests, and send nothing`(kind: String) async throws {
        let transport = server()
        let source = HTTPSource("http://server/api", transport: transport)
        for position in [PageRequest.Position.newer("7"), .around("5")] {
            let request = PageRequest(position, limit: 3)
            await #expect {
                switch kind {
                case "linked":
                    try await source.page("/linked", request, by: .links(items: { (words: [Word]) in words }))
                case "numbered":
                    try await source.page("/numbered", request, by: .number(items: { (words: [Word]) in words }))
                default: try await source.page("/offset", request, by: .offset(items: { (words: [Word]) in words }))
                }
            } throws: {
                ($0 as? LarderError)?.code == .invalidArgument
            }
        }
        #expect(transport.requests.isEmpty)
    }

    @Test func `a link whose path looks like another host stays on the origin of the API`() async throws {
        let transport = ScriptedTransport { request, number throws(TransportError) in
            var fields: Fields = [.contentType: "application/json"]
            if number == 1 { fields.add(.link, "<http://server//evil/linked?from=3>; rel=next") }
            return .text("[]", fields: fields)
        }
        let source = HTTPSource("http://server", transport: transport)
        let first: Fetched<EntityList<Word>> = try await source.page("/linked", PageRequest(limit: 3), by: .links())
        let cursor = try #require(first.value?.nextCursor)
        let _: Fetched<EntityList<Word>> =
            try await source.page("/linked", PageRequest(.older(cursor), limit: 3), by: .links())
        #expect(transport.requests.last?.url == "http://server//evil/linked?from=3")
    }

    @Test func `credentials do not follow a link to another origin`() async throws {
        let transport = server(otherOrigin: true)
        let source = HTTPSource("http://server/api", transport: transport)
        let error = await #expect(throws: LarderError.self) {
            let _: Fetched<EntityList<Word>> = try await source.page("/linked", PageRequest(limit: 3), by: .links())
        }
        #expect(error?.code == .unexpectedReply && error?.description.contains("http://other/") == true)
    }
}
