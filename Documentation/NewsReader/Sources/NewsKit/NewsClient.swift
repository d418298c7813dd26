import Foundation
import Larder

/// The client of the news backend: resources, writes and live updates on an `APIClient`.
public final class NewsClient: Sendable {
    /// Cache, session, transport, network monitor, telemetry.
    public let api: APIClient
    static let bookmarksKey = QueryKey("bookmarks")

    /// Opens the client.
    ///
    /// - Parameters:
    ///   - server: the URL of the backend.
    ///   - directory: where articles, pictures and pending writes are stored.
    ///   - followsEvents: whether the event stream is open while a person is signed in.
    ///   - adjust: changes the settings, for tests.
    public init(
        server: String,
        directory: String,
        followsEvents: Bool = false,
        adjust: @Sendable (inout APIClient.Configuration) -> Void = { _ in }
    ) async throws(LarderError) {
        var configuration = APIClient.Configuration()
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .iso8601
        configuration.http.decoder = decoder
        configuration.http.fields.set("Accept-Language", "en")
        configuration.session = .news
        configuration.probePath = "/almanac"
        if followsEvents { configuration.events = Self.events }
        adjust(&configuration)
        api = try await APIClient(server: server, account: "ana", directory: directory, configuration)
    }

    /// Signs in with the password grant.
    public func signIn(password: String) async throws(LarderError) {
        try await api.session.signIn { source throws(LarderError) in
            try await source.grant("grant_type=password&username=ana&password=\(HTTPSource.escape(password))")
        }
        // Writes that waited for a session are sent now.
        api.cache.networkReturned()
    }

    /// The backend says "article 7 changed", and nothing about what was missed while the connection was down.
    private static var events: APIClient.Events {
        var events = APIClient.Events(.eventStream("/events")) { update in
            update.invalidate(all: Article.self)
        } apply: { event, update in
            if let id = event["id"].flatMap({ Int($0) }) { update.invalidate(Article.self, id) }
        }
        events.needsSession = true
        return events
    }

    // MARK: Reading

    /// All articles, newest first, in pages by `Link` fields.
    public var articles: Timeline<Article> {
        let source = api.source
        var pages = PagedResource<Article>("articles", pageSize: 20) {
            try await source.page("/articles", $0, by: .links())
        }
        pages.completeness = .partial
        return api.cache.timeline(pages)
    }

    /// An article with its text. The backend decides how long it is fresh (`Cache-Control: max-age`).
    public func article(_ id: Int) -> Resource<Article> {
        let source = api.source
        return .entity(id) { try await source.fetch("/articles/\(id)", context: $0) }
    }

    /// The bookmarks of the person who is signed in.
    public var bookmarks: Resource<EntityList<Bookmark>> {
        let source = api.source
        return .list(Self.bookmarksKey.name) { context in
            try await source.fetch("/bookmarks", context: context, as: [Int].self).map { numbers in
                EntityList(numbers.map(Bookmark.init))
            }
        }
    }

    /// A resource of which the backend tells only the date of its last change.
    public var almanac: Resource<[String: String]> {
        let source = api.source
        return Resource("almanac", freshness: .timeToLive(.seconds(30))) {
            try await source.fetch("/almanac", context: $0)
        }
    }

    /// The person who is signed in.
    public var me: Resource<Me> {
        let source = api.source
        return Resource("me") { try await source.fetch("/me", context: $0) }
    }

    // MARK: Writing

    /// Sets or removes a bookmark: shown at once, sent when the network allows. Of several taps the last is sent.
    public func setBookmark(_ isSet: Bool, article: Int) throws(LarderError) {
        var write = APIClient.Write(isSet ? .put : .delete, "/articles/\(article)/bookmark")
        write.coalescingKey = "bookmark"
        if isSet {
            write.create(Bookmark(id: article))
            write.insert(Bookmark.self, article, in: Self.bookmarksKey, atEnd: true)
        } else {
            write.remove(Bookmark.self, article)
            write.take(Bookmark.self, article, outOf: Self.bookmarksKey)
        }
        try api.write(write)
    }

    /// Posts a comment: stored at once, sent when the network allows.
    public func comment(_ text: String, article: Int) throws(LarderError) {
        try api.write(.post, "/articles/\(article)/comments", ["text": text])
    }
}
