import Larder
import LarderTime

/// What one look at a resource has shown.
struct Reading<Value: Sendable & Equatable>: Sendable {
    /// What it came to.
    var snapshot: Snapshot<Value>
    /// What was shown on the way, and after how long.
    var steps: [Step]

    struct Step: Sendable {
        var time: Duration
        var badge: Badge
    }

    /// How it came about: `after 3 ms`, or `from disk after 3 ms, then from network after 12 ms`.
    var story: String {
        let shown = steps.compactMap { step in step.badge.source.map { ($0, step.time) } }
        if shown.count == 1 { return "after \(Ages.text(shown[0].1))" }
        return shown.map { source, time in "from \(source) after \(Ages.text(time))" }.joined(separator: ", then ")
    }
}

extension Kitchen {
    /// Reads a resource as the arguments say, until nothing more is on its way.
    ///
    /// - Throws: `Failure` where there is nothing to show.
    func read<Value>(_ resource: Resource<Value>, called name: String) async throws -> Reading<Value> {
        let reading = try await look(resource)
        guard reading.snapshot.value == nil else { return reading }
        if let error = reading.snapshot.refreshError { throw Failure(error, server: arguments.server) }
        if case .unreachable(let error) = connection { throw Failure(error, server: arguments.server) }
        if isOffline || arguments.policy?.name == "cacheOnly" {
            throw Failure("Nothing of \(name) is stored here yet. Ask \(arguments.server) once, without --offline.")
        }
        throw Failure("There is no \(name) on \(arguments.server).")
    }

    /// The same, also where there is nothing.
    func look<Value>(_ resource: Resource<Value>) async throws -> Reading<Value> {
        let asked: ReadPolicy? = arguments.isRefresh ? .networkFirst(timeout: nil) : arguments.policy?.value
        let policy = connection.isOpen ? asked : .cacheOnly
        let start = uptime.uptime
        var steps: [Reading<Value>.Step] = []
        var last: Snapshot<Value>?
        for await snapshot in cache.snapshots(resource, policy) {
            steps.append(.init(time: uptime.uptime - start, badge: Badge(snapshot)))
            last = snapshot
            if snapshot.activity == .idle { break }
        }
        guard let last else { throw Failure("The store was closed while it was read. Try again.") }
        return Reading(snapshot: last, steps: steps)
    }

    /// Reads a resource from what is stored, and asks only where it is not there.
    func glance<Value>(_ resource: Resource<Value>) async -> Value? {
        do {
            return try await cache.value(resource, connection.isOpen ? .cacheFirst : .cacheOnly)
        } catch {
            // Whoever glances does without.
            return nil
        }
    }

    /// The line below what is shown: the badge, and how it came about.
    func footer<Value>(_ reading: Reading<Value>) -> String {
        let badge = Badge(reading.snapshot)
        let story = reading.story
        return terminal.paint(badge, badge.text(at: now))
            + (story.isEmpty ? "" : terminal.paint("   (\(story))", .dim))
    }
}
