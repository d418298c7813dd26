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
    private var posts: Observed<Timeline<Post>.Snapshot>?
    private var people: Observed<Timeline<Profile>.Snapshot>?
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
    public var foundPosts: [Post] { posts?.current?.items ?? [] }

    /// The people with all words in their name, handle, place or description, in the order of the server.
    public var foundPeople: [Profile] { people?.current?.items ?? [] }

    /// Whether an answer is awaited: of the posts, of the people, or of both. Also before the first of them was looked up.
    public var isSearching: Bool {
        guard let posts, let people else { return false }
        return posts.current?.isRefreshing ?? true || people.current?.isRefreshing ?? true
    }

    /// The found people, posts and likes in one line, with the reason if the server could not be asked.
    public var summary: String {
        guard posts != nil else { return "" }
        let liked = foundPosts.count { $0.likedByMe }
        let text = "\(foundPeople.count) people, \(foundPosts.count) posts, \(liked) liked"
        guard let error = posts?.current?.refreshError ?? people?.current?.refreshError else { return text }
        return "\(text); not up to date: \(error.description)"
    }

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
        posts = words.isEmpty ? nil : client.search.posts(words).observed()
        people = words.isEmpty ? nil : client.search.people(words).observed()
    }
}
