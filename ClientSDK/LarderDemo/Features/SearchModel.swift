public import Larder
public import LarderModels
public import Observation

/// The state of a search field for a view, by observation (`withObservationTracking`, `Observations`).
///
/// A search begins when the text has not changed for a moment. It replaces the one before, whose request is then cancelled. Everything that
/// a view shows is derived from the newest snapshots, and is computed anew when one of them changes.
///
///     let search = SearchModel(client)
///     search.text = "night train"
///     for await summary in Observations({ search.summary }) { print(summary) }
@MainActor @Observable public final class SearchModel {
    /// The text of the field.
    public var text = "" {
        didSet {
            if Search.words(text) != Search.words(oldValue) { change() }
        }
    }
    /// How many posts and how many people a view has room for. Pages are loaded until so many were found, or all.
    public var room = 20 {
        didSet {
            if room > oldValue, !words.isEmpty { show(words) }
        }
    }
    /// The words of the search that is shown. Those of `text` follow after the pause.
    private var words = ""
    private var posts: FoundList<Post>?
    private var people: FoundList<Profile>?
    @ObservationIgnored private let client: LarderClient
    @ObservationIgnored private let pause: Duration
    @ObservationIgnored private let clock: any MonotonicClock
    @ObservationIgnored private var typing: Task<Void, Never>?

    /// - Parameters:
    ///   - client: the client of the signed-in user.
    ///   - pause: how long the text must not change before a search begins.
    ///   - clock: measures the pause.
    public init(
        _ client: LarderClient,
        pause: Duration = .milliseconds(250),
        clock: any MonotonicClock = SystemMonotonicClock()
    ) {
        self.client = client
        self.pause = pause
        self.clock = clock
    }

    deinit { typing?.cancel() }

    /// The found posts, newest first; those of the last search until the next has begun.
    public var foundPosts: [Post] { posts?.snapshot?.items ?? [] }

    /// The people with all words in their name, handle, place or description, in the order of the server.
    public var foundPeople: [Profile] { people?.snapshot?.items ?? [] }

    /// Whether the results are not yet those of `text`: a person is typing, or an answer or a page is awaited.
    public var isSearching: Bool {
        Search.words(text) != words || (posts?.isLoading ?? false) || (people?.isLoading ?? false)
    }

    /// The found people, posts and likes in one line, with `+` if there are more, and with the reason if the server could not be asked.
    public var summary: String {
        guard let posts, let people else { return "" }
        let liked = foundPosts.count { $0.likedByMe }
        func counted(_ count: String, _ one: String, _ more: String) -> String {
            "\(count) \(count == "1" ? one : more)"
        }
        let found = [
            counted(people.count, "person", "people"), counted(posts.count, "post", "posts"), "\(liked) liked",
        ]
        let text = found.joined(separator: ", ")
        guard let error = posts.error ?? people.error else { return text }
        return "\(text); not up to date: \(error.description)"
    }

    /// What to tell a person about the age of the found posts; nil without a search.
    public func notice(at now: WallTime) -> Freshness.Notice? { posts?.snapshot?.notice(at: now) }

    private func change() {
        typing?.cancel()
        let words = Search.words(text)
        guard !words.isEmpty else { return show("") }
        let (clock, due) = (clock, clock.uptime + pause)
        typing = Task { [weak self] in
            do { try await clock.sleep(until: due) } catch { return }
            self?.show(words)
        }
    }

    /// Observes a search; the one before is not observed any more.
    private func show(_ words: String) {
        let isSame = words == self.words
        self.words = words
        posts = words.isEmpty ? nil : FoundList(client.search.posts(words), room, isSame ? posts : nil)
        people = words.isEmpty ? nil : FoundList(client.search.people(words), room, isSame ? people : nil)
    }
}

/// The results of one kind: as many pages as a view has room for. Observed until it is released.
@MainActor @Observable private final class FoundList<Item: CacheEntity> {
    private(set) var snapshot: Timeline<Item>.Snapshot?
    private(set) var isLoading = true
    /// Why the last page could not be loaded.
    private var failure: LarderError?
    @ObservationIgnored private var task: Task<Void, Never>?

    /// - Parameter old: the results of the same search with less room, shown until a page has arrived.
    init(_ timeline: Timeline<Item>, _ room: Int, _ old: FoundList?) {
        snapshot = old?.snapshot
        task = Task { [weak self] in
            var failure: LarderError?
            // A server may send pages without a new item for ever.
            var emptyPages = 0
            for await var snapshot in timeline.snapshots {
                var hasMore =
                    !snapshot.isRefreshing && !snapshot.hasReachedEnd && snapshot.refreshError == nil
                    && snapshot.loadOlderError == nil
                while hasMore, snapshot.items.count < room, emptyPages < 2 {
                    self?.show(snapshot, isLoading: true)
                    let known = snapshot.items.count
                    do throws(LarderError) {
                        hasMore = try await timeline.loadOlder() == .more
                        snapshot = try await timeline.snapshot()
                        emptyPages = snapshot.items.count > known ? 0 : emptyPages + 1
                        failure = nil
                    } catch {
                        (hasMore, failure) = (false, error)
                    }
                }
                self?.failure = failure
                self?.show(snapshot, isLoading: snapshot.isRefreshing)
            }
        }
    }

    deinit { task?.cancel() }

    /// `40+` if there are more.
    var count: String {
        guard let snapshot, snapshot.freshness != .missing else { return "0" }
        return "\(snapshot.items.count)\(snapshot.hasReachedEnd ? "" : "+")"
    }
    var error: LarderError? { snapshot?.refreshError ?? snapshot?.loadOlderError ?? failure }

    private func show(_ snapshot: Timeline<Item>.Snapshot, isLoading: Bool) {
        self.snapshot = snapshot
        self.isLoading = isLoading
    }
}
