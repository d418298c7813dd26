import Foundation
public import LarderModels
public import LarderTime

/// A client of a Larder server that keeps what it has read, and shows it again when the server is out of reach.
///
/// Safe from any task.
public final class LarderClient: Sendable {
    private let server: String
    private let reader: CachedReader

    /// How long a profile counts as fresh.
    public static let profileTimeToLive: Duration = .seconds(300)
    /// How long a page of the feed counts as fresh.
    public static let feedTimeToLive: Duration = .seconds(60)

    /// Opens the cache in `directory`, which is made with mode 0700 if it is not there.
    ///
    /// - Parameters:
    ///   - server: where the server is: `http://127.0.0.1:8080`.
    ///   - directory: where the cache lives; one directory for each account.
    ///   - transport: how requests are sent.
    ///   - clock: the wall clock that freshness goes by.
    /// - Throws: `.storage` when the cache cannot be opened.
    public init(
        server: String,
        directory: String,
        transport: any Transport = URLSessionTransport(),
        clock: any WallClock = SystemWallClock()
    ) throws(LarderError) {
        self.server = server.hasSuffix("/") ? String(server.dropLast()) : server
        reader = CachedReader(
            transport: transport,
            clock: clock,
            memory: MemoryTier(limits: .init(count: 1_000)),
            disk: try DiskTier(directory: directory, clock: clock)
        )
    }

    /// A person's profile, fresh for five minutes.
    public func profile(_ id: String) async throws(LarderError) -> Snapshot<Profile> {
        let path = id.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(["_", "-"])) ?? id
        return try await reader.read(
            Profile.self,
            url: "\(server)/v1/profiles/\(path)",
            timeToLive: Self.profileTimeToLive
        )
    }

    /// The newest page of the feed, fresh for a minute.
    public func feed(limit: Int = 20) async throws(LarderError) -> Snapshot<Page<Post>> {
        try await reader.read(
            Page<Post>.self,
            url: "\(server)/v1/feed?limit=\(limit)",
            timeToLive: Self.feedTimeToLive
        )
    }
}
