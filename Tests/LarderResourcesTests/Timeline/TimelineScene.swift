import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization

/// A source of pages that a test answers, and that records the requests.
final class PageSource: Sendable {
    let script = ScriptedSource<EntityList<Note>>()
    private let log = Mutex<[PageRequest]>([])

    var requests: [PageRequest] { log.withLock { $0 } }

    /// The requested cursors; "newest" for the newest page.
    var cursors: [String] { requests.map { $0.cursor ?? "newest" } }

    func fetch(_ request: PageRequest) async throws -> Fetched<EntityList<Note>> {
        log.withLock { $0.append(request) }
        return try await script.fetch(request.context)
    }

    func prepare(_ numbers: [Int], next: String? = nil, validator: String? = nil) {
        script.prepare(.value(page(numbers, next: next), validator: validator))
    }

    func answer(_ index: Int, _ numbers: [Int], next: String? = nil) {
        script.answer(index, .value(page(numbers, next: next)))
    }

    func page(_ numbers: [Int], next: String?) -> EntityList<Note> {
        EntityList(numbers.map { Note($0) }, nextCursor: next)
    }

    func resource(pageSize: Int = 3) -> PagedResource<Note> {
        PagedResource("feed", ["of": "me"], pageSize: pageSize, freshness: .timeToLive(.seconds(60))) { request in
            try await self.fetch(request)
        }
    }
}

extension Note {
    init(_ number: Int, _ text: String = "", revision: Int64 = 1) {
        self.init(id: "\(number)", text: text, revision: revision)
    }
}

extension Timeline.Snapshot where Item == Note {
    /// A snapshot in short: identifiers, "|" for a gap, "." for the end, "(2)" for two held-back items.
    var line: String {
        var parts = segments.map { segment in
            switch segment {
            case .items(let items): items.map(\.id).joined(separator: " ")
            case .gap: "|"
            }
        }
        if heldBackCount > 0 { parts.insert("(\(heldBackCount))", at: 0) }
        return (parts + (hasReachedEnd ? ["."] : [])).joined(separator: " ")
    }
}

extension LarderCache {
    /// The snapshot of a new reader without a request.
    func line(_ resource: PagedResource<Note>) async throws -> String {
        do {
            return try await timeline(resource, .cacheOnly).snapshot().line
        } catch let error where error.code == .notCached {
            return "–"
        }
    }
}
