import LarderResources
import LarderTime
import Synchronization

/// An entity with a status that decides in which list it is, and a rank that decides where.
struct Job: CacheEntity {
    static let entityType = "job"
    var id: String
    var status: Int
    var rank: Int
    var revision: Int64
    var entityVersion: Int64? { revision > 0 ? revision : nil }

    static func precedes(_ left: Job, _ right: Job) -> Bool { (left.rank, left.id) < (right.rank, right.id) }
}

/// What a local operation does to a job.
struct JobEdit: Codable, Sendable, Equatable {
    enum Kind: String, Codable, Sendable { case set, create, delete }
    var kind: Kind
    var id: String
    var status = 0
    var rank = 0
}

/// A server of jobs with a list for each status, and operations that it accepts or rejects.
final class JobBoard: Sendable {
    struct State {
        var jobs: [String: Job] = [:]
        var rejected: Set<String> = []
        var lastID = 0
        /// The maximum length of a list; the rest is behind a cursor.
        var limit: [Int: Int] = [:]
        var requests = 0
    }

    let state = Mutex(State())

    /// Adds a job, or changes it.
    @discardableResult func set(_ id: String? = nil, status: Int? = nil, rank: Int? = nil) -> Job {
        state.withLock { state in
            if id == nil { state.lastID += 1 }
            let id = id ?? "j\(state.lastID)"
            var job = state.jobs[id] ?? Job(id: id, status: 0, rank: 0, revision: 0)
            job.status = status ?? job.status
            job.rank = rank ?? job.rank
            job.revision += 1
            state.jobs[id] = job
            return job
        }
    }

    func delete(_ id: String) -> Int64? {
        state.withLock { state in state.jobs.removeValue(forKey: id).map { $0.revision + 1 } }
    }

    func list(_ status: Int) -> EntityList<Job> {
        state.withLock { state in
            state.requests += 1
            let jobs = state.jobs.values.filter { $0.status == status }.sorted(by: Job.precedes)
            let limit = state.limit[status] ?? .max
            return EntityList(Array(jobs.prefix(limit)), nextCursor: jobs.count > limit ? "more" : nil)
        }
    }

    /// The list of a status, declared with its condition and order.
    func resource(_ status: Int) -> Resource<EntityList<Job>> {
        .list(
            "jobs",
            ["status": "\(status)"],
            of: Job.self,
            where: { $0.status == status },
            sortedBy: Job.precedes,
            freshness: .timeToLive(.seconds(60))
        ) { [weak self] _ in
            // A client that asks for ever would not let a test end.
            guard self?.state.withLock({ $0.requests < 200 }) ?? true else { throw CancellationError() }
            return .value(self?.list(status) ?? EntityList([]))
        }
    }

    var operation: WriteBehind<JobEdit, Job?> {
        var operation = WriteBehind<JobEdit, Job?>(
            "edit",
            scope: { $0.id },
            changes: { edit, changes in
                switch edit.kind {
                case .set: changes.modify(Job.self, edit.id) { ($0.status, $0.rank) = (edit.status, edit.rank) }
                case .create:
                    changes.create(Job(id: edit.id, status: edit.status, rank: edit.rank, revision: 0))
                case .delete: changes.remove(Job.self, edit.id)
                }
            },
            send: { [weak self] attempts in attempts.map { self?.carryOut($0.input) ?? .retry(.init(.offline, "")) } }
        )
        operation.acknowledge = { edit, job, update in
            if let job { update.put(job) }
            if edit.kind == .delete { update.remove(Job.self, edit.id) }
        }
        operation.serverIDs = { edit, job in edit.kind == .create ? [edit.id: job?.id ?? edit.id] : [:] }
        return operation
    }

    private func carryOut(_ edit: JobEdit) -> Outbox.Outcome<Job?> {
        let isKnown = state.withLock { $0.jobs[edit.id] != nil }
        guard !state.withLock({ $0.rejected.contains(edit.id) }), isKnown || edit.kind == .create else {
            return .rejected(LarderError(.rejected, "No.", status: 403))
        }
        switch edit.kind {
        case .create: return .accepted(set(status: edit.status, rank: edit.rank))
        case .set: return .accepted(set(edit.id, status: edit.status, rank: edit.rank))
        case .delete:
            _ = delete(edit.id)
            return .accepted(nil)
        }
    }
}
