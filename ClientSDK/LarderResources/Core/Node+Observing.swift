import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Node {
    /// Adds an observer. The first snapshot is in the mailbox when this returns.
    func observe(_ options: ReadOptions, _ mailbox: Mailbox<Snapshot<Value>>) -> UInt64 {
        let policy = options.policy
        let start = core.configuration.monotonicClock.uptime
        let found = find(options)
        let observer = Observer<Value>(
            mailbox: mailbox,
            options: options,
            spread: options.bound == nil ? 1 : 0.8 + 0.2 * core.configuration.random(),
            isSettled: found.isShown || policy.remote == .never,
            fallbackAt: found.asks ? policy.fallbackDelay.map { start + $0 } : nil
        )
        let id = state.withLock { state -> UInt64 in
            state.lastObserver += 1
            if state.isClosed { mailbox.end() }
            state.observers[state.lastObserver] = observer
            return state.lastObserver
        }
        if found.asks { ask(for: id, options) }
        if found.postponed != nil { revalidateObserved() }
        showAll(to: id, isFromDisk: found.content.facts.isFromDisk)
        return id
    }

    /// Joins the request in flight for an observer or starts one. `showAll` follows.
    private func ask(for id: UInt64, _ options: ReadOptions) {
        let joined: Flight?
        do { joined = try join(options, needsOrigin: options.policy.wantsOriginOnly) } catch {
            // The only error: the node was closed meanwhile, which has ended the mailboxes of its observers.
            return
        }
        guard let flight = joined else { return }
        let isTaken = state.withLock { state in
            guard let observer = state.observers[id], observer.flight?.isFinished ?? true else { return false }
            // It may have ended already: `showAll` follows.
            state.observers[id]?.flight = flight
            return true
        }
        if !isTaken { flight.leave() }
    }

    func removeObserver(_ id: UInt64) {
        // Removed first: its last snapshot holds user values, which must not be released under the lock.
        let (observer, wait) = state.withLock { state -> (Observer<Value>?, Task<Void, Never>?) in
            let observer = state.observers.removeValue(forKey: id)
            guard state.observers.isEmpty else { return (observer, nil) }
            state.owesRequest = false
            return (observer, plan(nil, &state))
        }
        wait?.cancel()
        observer?.flight?.leave()
    }

    /// Shows the current content to all observers.
    ///
    /// - Parameters:
    ///   - flight: a request that has just ended, with its error.
    ///   - newcomer: a new observer, and whether its content was read from the disk.
    func showAll(
        after flight: Flight? = nil,
        _ error: LarderError? = nil,
        to newcomer: UInt64? = nil,
        isFromDisk: Bool = false
    ) {
        guard state.withLock({ !$0.observers.isEmpty }) else { return }
        let now = core.now()
        // Left outside of the lock: the last holder cancels the request, which locks the node.
        var ended: [Flight] = []
        var replaced: Task<Void, Never>?
        // Released outside of the lock too: they have values of the app.
        var unread: [Snapshot<Value>?] = []
        defer {
            withExtendedLifetime(unread) {}
            replaced?.cancel()
            for flight in ended { flight.leave() }
        }
        let keepsBound = keepsBound
        while true {
            let content = content()
            let isShown = state.withLock { state -> Bool in
                // A later change is shown by its own call, and nothing older after it.
                guard state.content != nil else { return false }
                var due: Duration?
                for (id, var observer) in state.observers {
                    var isAnswer = flight != nil && error == nil
                    // It may have ended before the observer was added.
                    if let theirs = observer.flight, theirs === flight || theirs.isFinished {
                        let error = theirs === flight ? error : state.own.backOff.error
                        let freshness = freshness(content, observer.options, at: now)
                        observer.isSettled =
                            observer.isSettled || error == nil
                            || permits(observer.options.policy.fallback, freshness)
                        isAnswer = isAnswer || error == nil
                        ended.append(theirs)
                        observer.flight = nil
                    }
                    if !observer.isSettled, let end = observer.fallbackAt {
                        if end > now.uptime {
                            due = min(due ?? end - now.uptime, end - now.uptime)
                        } else {
                            let freshness = freshness(content, observer.options, at: now)
                            observer.isSettled = permits(observer.options.policy.fallback, freshness)
                        }
                    }
                    let source: CacheTier? =
                        isAnswer ? .network : id == newcomer && isFromDisk ? .disk : nil
                    let snapshot = snapshot(
                        content,
                        observer.options,
                        shows: observer.isSettled,
                        source: source,
                        error: state.own.backOff.error,
                        isFetching: state.flight != nil,
                        revision: state.revision,
                        at: now
                    )
                    unread.append(observer.mailbox.put(snapshot))
                    let isKept = keepsBound && !state.owesRequest && state.flight == nil
                    if let wait = nextLook(content, observer, isKept: isKept, state.askedAt, at: now) {
                        due = min(due ?? wait, wait)
                    }
                    state.observers[id] = observer
                }
                guard !state.observers.isEmpty else { return true }
                // Under the lock, so that a later state is not followed by the time of an earlier one.
                let times = [due.map { now.uptime + $0 }, state.owedAt].compactMap(\.self)
                replaced = plan(times.min(), &state)
                return true
            }
            if isShown { break }
        }
    }

    /// When the content of observers changes next by time alone.
    ///
    /// - Parameter isKept: whether bounded staleness is maintained.
    private func nextLook(
        _ content: Content,
        _ observer: Observer<Value>,
        isKept: Bool,
        _ askedAt: MonotonicTime?,
        at now: Moment
    ) -> Duration? {
        guard let newest = content.judged else { return nil }
        let options = observer.options
        let rule = presentRule(options)
        let expiry = ([newest] + content.facts.pages).lazy.compactMap { page in
            rule.remaining(self.facts(page, options), fields: options.fields, at: now)
        }.filter { $0 > .zero }.min()
        guard isKept, let bound = refreshIn(newest.times, observer, askedAt, at: now) else { return expiry }
        return min(bound, expiry ?? bound)
    }

    /// The time until the next refresh for an observer with a bound; zero or less if it is due.
    private func refreshIn(
        _ times: Freshness.Times,
        _ observer: Observer<Value>,
        _ askedAt: MonotonicTime?,
        at now: Moment
    ) -> Duration? {
        guard let bound = observer.options.bound else { return nil }
        // The last request may have failed, or a cache on the way may have answered with a value older than the bound, or the answer may have
        // said nothing about the age: an immediate retry would not help.
        let ages = [times.age(at: now), askedAt.map { now.uptime - $0 }].compactMap(\.self)
        guard let age = ages.min() else { return .milliseconds(1) }
        return max(.milliseconds(1), bound * observer.spread - age)
    }

    // MARK: What happens

    func contentChanged() {
        forget()
        show()
    }

    func show() {
        guard state.withLock({ !$0.observers.isEmpty && $0.answers == 0 }) else { return }
        let content = content()
        // An event may have invalidated it: observers need a new value.
        let isWanted = state.withLock { state in
            content.isInvalidated && (content.facts.lacksItems || content.facts.invalid != state.unended)
                || state.observers.values.contains { content.isPartial($0.options) }
        }
        if isWanted { revalidateObserved(afterChange: true) }
        showAll()
    }

    @discardableResult func forget() -> (any Sendable)? {
        state.withLock { state in
            state.revision += 1
            return state.content.take()
        }
    }

    func forgetUnobserved() {
        if state.withLock({ $0.observers.isEmpty }) { forget() }
    }

    func clockWasSetBack() {
        revalidateObserved()
        showAll()
    }

    func networkReturned() {
        core.checkForeignCommits(at: core.now())
        state.withLock { state in
            state.own.backOff.endNetworkDelay()
            for place in state.places.keys { state.places[place]?.backOff.endNetworkDelay() }
        }
        revalidateObserved()
        showAll()
    }

    /// Plans the next call of `timeCame`; nil: none. Called under the node's lock.
    ///
    /// - Returns: what this replaces. The caller cancels it without a lock, because that calls the app's clock.
    func plan(_ due: MonotonicTime?, _ state: inout State) -> Task<Void, Never>? {
        guard !state.isClosed, state.timer?.end != due else { return nil }
        let replaced = state.timer?.task
        let clock = core.configuration.monotonicClock
        state.timer = due.map { due in
            let task = Task { [weak self] in
                do { try await clock.sleep(until: due) } catch { return }
                // What is due has a reason of its own, not that of the request that planned it.
                await RequestReason.$current.withValue(nil) { await self?.timerEnded(due) }
            }
            return (due, task)
        }
        return replaced
    }

    private func timerEnded(_ end: MonotonicTime) async {
        let isDue = state.withLock { state in
            guard state.timer?.end == end else { return false }
            state.timer = nil
            return true
        }
        if isDue { await core.reading { timeCame() } }
    }

    func timeCame() {
        guard isObserved else { return }
        core.checkForeignCommits(at: core.now())
        let content = content()
        let now = core.now()
        let isDue = state.withLock { state in
            if let owed = state.owedAt, owed <= now.uptime { return true }
            guard let times = content.times else { return false }
            return state.observers.values.contains { observer in
                // The wake-up may be slightly early, which does no harm.
                observer.options.bound.map { bound in times.age(at: now).map { $0 >= bound * 0.8 } ?? true } ?? false
            }
        }
        if isDue { revalidateObserved(isBounded: true) }
        showAll()
    }

    /// Starts a request for observers whose policy wants one, if the content is not fresh. `showAll` follows.
    ///
    /// - Parameter afterChange: whether a part has changed. Lists whose items the store has no room for would then ask in turns, for ever.
    func revalidateObserved(isBounded: Bool = false, afterChange: Bool = false) {
        guard refreshesByItself else {
            // The return of the network asks again.
            state.withLock { $0.owesRequest = false }
            return
        }
        let content = content()
        let now = core.now()
        let wanting = state.withLock { state in
            state.observers.filter { _, observer in
                guard observer.flight?.isFinished ?? true, observer.options.policy.remote != .never else {
                    return false
                }
                if isBounded, observer.options.bound != nil { return true }
                return !observer.isSettled || freshness(content, observer.options, at: now) != .fresh
            }.map { ($0.key, $0.value.options) }
        }
        guard !wanting.isEmpty else {
            state.withLock { $0.owesRequest = false }
            return
        }
        guard postponement(at: now) == nil else { return owe() }
        if afterChange, content.facts.lacksItems || content.facts.isPartial, state.withLock({ $0.flight == nil }),
            !core.readRetryBudget.withLock({ $0.withdraw(at: now.uptime) })
        {
            // What is on a screen is asked for again, but not at once.
            state.withLock { state in
                if state.owedAt == nil { state.own.backOff.retryAt = now.uptime + .seconds(60) }
            }
            return owe()
        }
        for (id, options) in wanting { ask(for: id, options) }
    }

    func close() {
        let (observers, flights, timer, content) = state.withLock { state in
            state.isClosed = true
            defer {
                state.observers = [:]
                (state.own, state.places) = (Requests(), [:])
            }
            return (
                Array(state.observers.values), state.own.flights + state.places.values.flatMap(\.flights),
                state.timer.take(), state.content.take()
            )
        }
        defer { withExtendedLifetime(content) {} }
        timer?.task.cancel()
        for observer in observers {
            observer.mailbox.end()
            observer.flight?.leave()
        }
        for flight in flights {
            flight.finish(.failure(LarderError(.closed, "The cache was closed or erased.")))
            flight.cancel()
        }
    }
}
