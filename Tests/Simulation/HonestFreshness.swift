import Larder
import LarderDemo
import LarderModels
import LarderTime
import LarderTransport

/// Invariant 5: nothing is called fresh longer than its lifetime after the request that has confirmed it began, whatever clocks say.
extension Device {
    /// The resources that are judged: what a request for them begins with, and their lifetime.
    private static let judged: [(path: String, lifetime: Duration)] = [
        ("/v1/profiles/user_2", .seconds(300)), ("/v1/feed?", .seconds(60)), ("/v1/accounts", .seconds(15)),
    ]

    /// Notes a reply that confirms a resource.
    func noteReply(to request: TransportRequest, status: Int, sentAt: MonotonicTime) {
        if status == 200, request.url.hasSuffix("/v1/sessions/refresh") { noteRenewal(request.body, sentAt) }
        guard request.method == .get, status == 200 || status == 304 else { return }
        let path = request.url.dropFirst(server.count)
        if path.hasPrefix("/v1/tasks?") { noteTasks(path.contains("fields="), path.contains("ids="), sentAt) }
        for (judged, _) in Self.judged where path == judged || judged.hasSuffix("?") && path.hasPrefix(judged) {
            // Another page says nothing about the newest one.
            guard !["after=", "before=", "around="].contains(where: path.contains) else { continue }
            machine.confirmedAt[judged] = max(sentAt, machine.confirmedAt[judged] ?? sentAt)
        }
    }

    /// A list is read as IDs first, and then the tasks that are not known yet, or as a whole.
    private func noteTasks(_ isOfIDs: Bool, _ isOfMissing: Bool, _ sentAt: MonotonicTime) {
        if isOfIDs {
            // Of several, the missing tasks belong to the first or a later one.
            taskIDsAskedAt = taskIDsAskedAt ?? sentAt
        } else if let start = isOfMissing ? taskIDsAskedAt.take() : sentAt {
            tasksConfirmedAt = max(start, tasksConfirmedAt ?? start)
        }
    }

    /// Judges what is called fresh now.
    func judgeFreshness() {
        // On a poor network lifetimes are longer, as the policy of the monitor says.
        guard let client, client.session.userID != nil,
            simulation.judges(.freshness, unless: client.network != nil)
        else { return }
        let cache = client.cache
        // The reply to an edit confirms a profile too, and the change feed tells the others of it.
        if simulation.coverage.counts[Act.editProfile.rawValue] == nil, simulation.places == 0 {
            judge(cache.stored(client.profiles.resource("user_2"))?.freshness, "/v1/profiles/user_2")
        }
        judge(cache.stored(client.feed.newest)?.freshness, "/v1/feed?")
        judge(cache.stored(client.bank.accounts)?.freshness, "/v1/accounts")
    }

    private func judge(_ freshness: Freshness?, _ path: String) {
        guard freshness == .fresh, let lifetime = Self.judged.first(where: { $0.path == path })?.lifetime else {
            return
        }
        simulation.coverage.count("judged fresh")
        // The wall clock may be wrong by two seconds without being noticed, and by a hundredth if it drifts.
        let limit = lifetime * 1.01 + .seconds(2)
        guard let confirmed = machine.confirmedAt[path] else {
            return simulation.find(.freshness, "\(name): \(path) is fresh and was never confirmed")
        }
        let age = simulation.clock.uptime - confirmed
        simulation.expect(age <= limit, .freshness, "\(name): \(path) is fresh \(age) after it was confirmed")
        // A transfer makes the balances stale, also those that a request brings which began before its end.
        // A disk that takes nothing does not take this either, until it works again.
        guard path == "/v1/accounts", let paidAt = machine.paidAt,
            simulation.judges(.balances, unless: machine.hadDiskTrouble)
        else { return }
        let isOlder = paidAt - confirmed > .seconds(1)
        simulation.expect(!isOlder, .freshness, "\(name): the balances are fresh, and older than the last transfer")
    }

    /// A list of tasks has what was there when its latest request began, and does not lose what it has shown.
    func judgeTasks() {
        // The process may die while it reads.
        guard let client, let list = client.cache.stored(client.tasks.list()), let items = list.value?.items, !hasDied
        else { return }
        // After these some replies cannot be read.
        let cutting: [Act] = [.schemaDrift, .journey, .malformed, .truncates]
        // Tasks that a small store has evicted are missing until the list is read again, and the list says so.
        var isGapped = false
        if case .gapped = list.completeness { isGapped = true }
        let isExcused =
            !simulation.lags.isEmpty || machine.hadDiskTrouble || isGapped
            || cutting.contains { simulation.coverage.counts[$0.rawValue] != nil }
        guard simulation.judges(.tasks, unless: isExcused) else { return }
        let shown = Set(items.map(\.id))
        for (id, addedAt) in simulation.errands where !shown.contains(id) {
            if errandsShown.contains(id) {
                simulation.find(.monotonicReads, "\(name): \(id) was in the list of tasks, and is not any more")
            } else if let confirmed = tasksConfirmedAt, confirmed > addedAt {
                simulation.find(.monotonicReads, "\(name): \(id) is not in a list of tasks that was read later")
            }
        }
        errandsShown.formUnion(shown.filter { simulation.errands[$0] != nil })
    }
}
