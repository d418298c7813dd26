import LarderResources
import LarderTesting
import LarderTime
import LarderTransport
import Synchronization

struct Liked: CacheEntity {
    static let entityType = "liked"
    var id: String
    var likes: Int
    var isMine: Bool
    var revision: Int64
    var entityVersion: Int64? { revision }
}

struct Tap: Codable, Sendable, Equatable {
    var post: String
    var isLike: Bool
}

/// A server of likes that carries out each key once, and whose replies can be lost.
final class LikeServer: Sendable {
    struct State {
        var posts: [String: Liked] = [:]
        var answered: [String: Liked] = [:]
        var effects = 0
        var requests: [[String]] = []
        var behaviour: @Sendable (Int) -> Behaviour = { _ in .answers }
    }

    enum Behaviour: Sendable {
        case answers
        /// It carries out the operation, and the reply is lost.
        case losesReply
        case isUnreachable
        /// There is no session to send with.
        case lacksSession
        case isBusy(Duration)
        case rejects(Set<String>)
        /// It fails for a batch with this post.
        case breaks(on: String)
    }

    let state = Mutex(State())

    init(posts: Int) {
        state.withLock { state in
            for index in 0..<posts {
                state.posts["\(index)"] = Liked(id: "\(index)", likes: 10, isMine: false, revision: 1)
            }
        }
    }

    func post(_ id: String) -> Liked {
        state.withLock { $0.posts[id] ?? Liked(id: id, likes: 0, isMine: false, revision: 0) }
    }

    func behave(_ behaviour: @escaping @Sendable (Int) -> Behaviour) { state.withLock { $0.behaviour = behaviour } }

    var requests: [[String]] { state.withLock { $0.requests } }

    func send(_ attempts: [Outbox.Attempt<Tap>]) throws -> [Outbox.Outcome<Liked>] {
        let behaviour = state.withLock { state in
            state.requests.append(attempts.map { "\($0.input.post)\($0.input.isLike ? "+" : "-")" })
            return state.behaviour(state.requests.count)
        }
        switch behaviour {
        case .lacksSession: throw LarderError(.unauthorized, "sign in")
        case .isUnreachable: throw TransportError(.unreachable, "no route")
        case .isBusy(let wait):
            return attempts.map { _ in .retry(LarderError(.rejected, "busy", status: 503, retryAfter: wait)) }
        case .losesReply:
            _ = carryOut(attempts, rejected: [])
            throw TransportError(.interrupted, "the reply was lost")
        case .rejects(let posts): return carryOut(attempts, rejected: posts)
        case .breaks(let post):
            if attempts.map(\.input.post) == [post] {
                return [.retry(LarderError(.rejected, "It fell over.", status: 500, retryAfter: .seconds(30)))]
            }
            if attempts.contains(where: { $0.input.post == post }) {
                throw LarderError(.rejected, "It fell over.", status: 500)
            }
            return carryOut(attempts, rejected: [])
        case .answers: return carryOut(attempts, rejected: [])
        }
    }

    private func carryOut(_ attempts: [Outbox.Attempt<Tap>], rejected: Set<String>) -> [Outbox.Outcome<Liked>] {
        state.withLock { state in
            attempts.map { attempt in
                let tap = attempt.input
                if rejected.contains(tap.post) {
                    let problem = "https://larder.test/problems/closed"
                    return .rejected(
                        LarderError(.rejected, "This post takes no likes.", status: 403, problem: problem)
                    )
                }
                if let known = state.answered[attempt.idempotencyKey] { return .accepted(known) }
                guard var post = state.posts[tap.post] else {
                    return .rejected(LarderError(.rejected, "There is no such post.", status: 404))
                }
                state.effects += 1
                if post.isMine != tap.isLike {
                    post.isMine = tap.isLike
                    post.likes += tap.isLike ? 1 : -1
                    post.revision += 1
                }
                state.posts[tap.post] = post
                state.answered[attempt.idempotencyKey] = post
                return .accepted(post)
            }
        }
    }

    var operation: WriteBehind<Tap, Liked> {
        var operation = WriteBehind<Tap, Liked>(
            "like",
            scope: { $0.post },
            changes: { tap, changes in
                changes.modify(Liked.self, tap.post) { post in
                    guard post.isMine != tap.isLike else { return }
                    post.isMine = tap.isLike
                    post.likes += tap.isLike ? 1 : -1
                }
            },
            send: { [weak self] in try self?.send($0) ?? [] }
        )
        operation.coalescingKey = { $0.post }
        operation.coalesce = { _, new in .replace(new) }
        operation.batchMaximum = 100
        operation.acknowledge = { _, post, update in update.put(post) }
        return operation
    }

    func list(_ ids: [String]) -> Resource<EntityList<Liked>> {
        .list("posts", of: Liked.self, freshness: .timeToLive(.seconds(60))) { [weak self] _ in
            .value(EntityList(ids.compactMap { self?.post($0) }))
        }
    }

    func post(resource id: String) -> Resource<Liked> {
        .entity(id) { [weak self] _ in self.map { .value($0.post(id)) } ?? .gone }
    }
}
