import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization

/// A server with a list in pages, whose replies wait until a test releases them in any order.
///
/// A cursor names the post after which a page begins. It stays valid for ever, or until the post is deleted.
final class FeedModel: Sendable {
    struct Post: Sendable {
        var text: String
        var revision: Int64
    }

    private struct Request {
        var request: PageRequest
        /// The reply at the time of the request.
        var early: Fetched<EntityList<Note>>
        var startedAt: MonotonicTime
        var wall: WallTime
        /// Whether the cache no longer waits for the reply, because its timeout has passed.
        var isTimedOut = false
        var continuation: CheckedContinuation<Fetched<EntityList<Note>>, Never>
    }

    private struct State {
        var posts: [Int: Post] = [:]
        var last = 0
        var requests: [Request] = []
        var isAutomatic = false
        var life = 0
        var events = 0
        var waiter: (count: Int, isAwake: Pending<Void>)?
        /// When the last request began whose reply has shown or confirmed a post.
        var served: [Int: WallTime] = [:]
        /// The last confirmation of the newest page: if its value was evicted, the page is requested again within the time limit.
        var confirmed: (at: MonotonicTime, startedAt: MonotonicTime)?
    }

    let cursorsDie: Bool
    private let clock: ManualClock
    private let state = Mutex(State())

    init(cursorsDie: Bool, clock: ManualClock) {
        self.cursorsDie = cursorsDie
        self.clock = clock
    }

    // MARK: Content

    var posts: [Int: Post] { state.withLock { $0.posts } }

    func insert() -> Int {
        state.withLock { state in
            state.last += 1
            state.posts[state.last] = Post(text: "first", revision: 1)
            return state.last
        }
    }

    func edit(_ number: Int, _ text: String) -> Post? {
        state.withLock { state in
            guard var post = state.posts[number] else { return nil }
            post.text = text
            post.revision += 1
            state.posts[number] = post
            return post
        }
    }

    func delete(_ number: Int) -> Int64? {
        state.withLock { state in state.posts.removeValue(forKey: number).map { $0.revision + 1 } }
    }

    // MARK: Requests

    /// Answers a request of a process: when the test releases it, or at once if everything is answered at once or the
    /// process has ended.
    func fetch(_ request: PageRequest, life: Int) async -> Fetched<EntityList<Note>> {
        await withCheckedContinuation { continuation in
            let now = state.withLock { state -> Fetched<EntityList<Note>>? in
                let early = self.answer(request, state.posts)
                if state.isAutomatic || state.life != life {
                    self.note(early, request, state.posts, self.clock.now, &state.served)
                    return early
                }
                var startedAt = self.clock.uptime
                if request.cursor == nil, request.validator == nil, let confirmed = state.confirmed.take(),
                    confirmed.at == startedAt
                {
                    startedAt = confirmed.startedAt
                }
                state.requests.append(
                    Request(
                        request: request,
                        early: early,
                        startedAt: startedAt,
                        wall: self.clock.now,
                        continuation: continuation
                    )
                )
                return nil
            }
            if let now { continuation.resume(returning: now) } else { note() }
        }
    }

    private func answer(_ request: PageRequest, _ posts: [Int: Post]) -> Fetched<EntityList<Note>> {
        let first = request.cursor.flatMap { Int($0) } ?? .max
        if cursorsDie, request.cursor != nil, posts[first] == nil { return .gone }
        let numbers = posts.keys.filter { $0 < first }.sorted(by: >)
        let page = numbers.prefix(request.limit)
        let validator = page.map { "\($0)/\(posts[$0]?.revision ?? 0)" }.joined(separator: " ")
        if let known = request.validator, known == validator { return .notModified() }
        let next = page.count < numbers.count ? page.last.map { "\($0)" } : nil
        let notes = page.map { Note($0, posts[$0]?.text ?? "", revision: posts[$0]?.revision ?? 0) }
        return .value(EntityList(notes, nextCursor: next), validator: validator)
    }

    /// Notes the posts that a reply shows or confirms.
    private func note(
        _ reply: Fetched<EntityList<Note>>,
        _ request: PageRequest,
        _ posts: [Int: Post],
        _ wall: WallTime,
        _ served: inout [Int: WallTime]
    ) {
        let numbers =
            reply.value.map { $0.items.compactMap { Int($0.id) } }
            ?? request.validator.map { validator in
                validator.split(separator: " ").compactMap { Int($0.prefix { $0 != "/" }) }
            } ?? []
        for number in numbers { served[number] = max(wall, served[number] ?? wall) }
    }

    /// When the last request began whose reply has shown or confirmed a post.
    func served(_ number: Int) -> WallTime? { state.withLock { $0.served[number] } }

    var waiting: Int { state.withLock { $0.requests.count } }

    /// Marks the requests whose timeout has passed, and returns how many of them were not marked before.
    func timeOut(after timeout: Duration) -> Int {
        let now = clock.uptime
        return state.withLock { state in
            var count = 0
            for index in state.requests.indices where !state.requests[index].isTimedOut {
                guard state.requests[index].startedAt + timeout <= now else { continue }
                state.requests[index].isTimedOut = true
                count += 1
            }
            return count
        }
    }

    /// Answers a waiting request with the content of now, or of when it arrived.
    ///
    /// - Returns: whether the cache still waits for the reply, so that an event follows.
    @discardableResult
    func release(_ index: Int, isEarly: Bool) -> Bool {
        let (request, answer) = state.withLock { state in
            let request = state.requests.remove(at: index)
            let reply = isEarly ? request.early : self.answer(request.request, state.posts)
            // No later request is answered with older content: the cache takes the order of requests for that of their content.
            if !isEarly {
                for other in index..<state.requests.endIndex {
                    state.requests[other].early = self.answer(state.requests[other].request, state.posts)
                }
            }
            if request.request.cursor == nil, reply.value == nil, !reply.isGone {
                state.confirmed = (self.clock.uptime, request.startedAt)
            }
            if !request.isTimedOut { self.note(reply, request.request, state.posts, request.wall, &state.served) }
            return (request, reply)
        }
        request.continuation.resume(returning: answer)
        return !request.isTimedOut
    }

    /// Answers every request at once from now on.
    func answerAll() {
        state.withLock { $0.isAutomatic = true }
        while waiting > 0 { release(0, isEarly: true) }
    }

    /// From now on requests are answered by hand: those of a new process, whose number this gives. What the process before has
    /// left running may still ask, and is no event.
    func answerByHand() -> Int {
        state.withLock { state in
            state.isAutomatic = false
            state.life += 1
            return state.life
        }
    }

    // MARK: Events

    /// The number of requests that have arrived and of readers that have ended.
    var events: Int { state.withLock { $0.events } }

    /// Counts a request that has arrived or a reader that has ended.
    func note() {
        let isAwake = state.withLock { state -> Pending<Void>? in
            state.events += 1
            guard let waiter = state.waiter, state.events >= waiter.count else { return nil }
            state.waiter = nil
            return waiter.isAwake
        }
        isAwake?.finish(())
    }

    /// Waits for a number of events, or for the cancellation of the waiting task.
    func wait(forEvents count: Int) async {
        let isAwake = Pending<Void>()
        let isReady = state.withLock { state in
            if state.events >= count { return true }
            state.waiter = (count, isAwake)
            return false
        }
        if !isReady { await isAwake.value(ifCancelled: ()) }
    }
}
