import LarderEvents
import LarderStorage
import LarderTime

/// The requests for pages, and how their replies are stored.
extension TimelineEngine {
    private var list: RunList {
        get throws { try core.query(node.key)?.stored.query.runs() ?? RunList() }
    }

    /// Changes the stored list.
    ///
    /// - Parameter mayStore: whether it may be written to the disk.
    private func store(mayStore: Bool = true, _ change: @escaping @Sendable (inout RunList) -> Void) throws {
        var update = CacheUpdate()
        update.answered = node.storedKey
        update.isMemoryOnly = !mayStore
        let merge = QueryMerge(confirms: false) { query, _ in
            _ = try query.editRuns(change)
        }
        update.steps.append(.mergeQuery(node.key, merge))
        try core.commit(update, isTolerant: true)
        if update.isMemoryOnly { try node.removeFromDisk() }
    }

    /// Changes the stored list, on a thread of the cache.
    func edit(_ change: @escaping @Sendable (inout RunList) -> Void) async throws(LarderError) {
        do { try await core.changing { try self.store(change) } } catch { throw LarderError(error) }
    }

    /// Fetches the page of a place. If the server does not know the cursor any more, because its item is gone, the
    /// pages above are fetched again until one of them leads to the place.
    ///
    /// - Parameter isForced: whether a person has asked to confirm the page.
    func fetch(_ place: TimelinePlace, isForced: Bool = false) async throws {
        if case .around(let item) = place {
            guard try await ask(.around(item), at: place) else {
                throw LarderError(.gone, "\"\(node.key)\" has no item \(item) on the server.")
            }
            return
        }
        guard let cursor = try await core.reading({ try self.list.cursor(of: place) }) else {
            if place == .page(nil) { try await newest(isForced: isForced) }
            if case .newer(let number) = place { try await fetch(.gap(number), isForced: isForced) }
            return
        }
        if cursor == RunList.newestCursor { return try await newest(isForced: isForced) }
        if case .newer(let number) = place {
            // Without the cursor the gap is filled from its newer end.
            if try await !ask(.newer(cursor), at: place) { try await fetch(.gap(number), isForced: isForced) }
            return
        }
        if try await ask(.older(cursor), at: place, isForced: isForced) { return }
        try store { $0.forget(cursor) }
        var used: Set<String> = [cursor]
        var hasAskedForNewest = false
        while let next = try list.cursor(of: place) {
            if used.insert(next).inserted {
                if try await ask(.older(next), at: place) { return }
                try store { $0.forget(next) }
            } else if let above = try list.cursors(above: place).first(where: { used.insert($0).inserted }) {
                if try await !ask(.older(above), at: .page(above)) { try store { $0.forget(above) } }
            } else if !hasAskedForNewest {
                hasAskedForNewest = true
                try await newest()
            } else {
                throw LarderError(
                    .gone,
                    "The server no longer knows the cursors of \"\(node.key)\". Refresh the timeline with `onDiscontinuity: .reset`."
                )
            }
        }
    }

    /// Fetches the newest page, as a refresh does.
    ///
    /// - Parameter isForced: whether it is requested although the last request has just failed.
    func newest(isForced: Bool = true) async throws(LarderError) {
        let options = node.options(resource.list)
        let now = core.now()
        if !isForced, let error = node.postponement(at: now) { throw error }
        let flight = try node.join(options, startedSince: now.uptime, isForced: isForced)
        defer { flight.leave() }
        try await flight.wait()
    }

    /// Fetches a page and merges it; false if the server does not know the cursor.
    private func ask(_ position: PageRequest.Position, at place: TimelinePlace, isForced: Bool = false) async throws
        -> Bool
    {
        let resource = resource
        let stamp = core.stamps.next()
        let moment = core.now()
        var renewed: String?
        if case .renewal = place, case .older(let cursor) = position { renewed = cursor }
        let known = try await core.reading { [renewed] in try renewed.flatMap { try self.confirmation($0) } }
        var request = PageRequest(
            position,
            limit: known?.limit ?? resource.pageSize(core.configuration.networkBehavior()),
            validator: known?.validator,
            mustRevalidate: renewed != nil
        )
        let cause = renewed == nil ? "a page was asked for" : "the page must be confirmed"
        let reason = RequestReason(
            node.key.description,
            cause: isForced ? "a refresh of a page" : cause,
            isUserInitiated: isForced
        )
        if case .older(let cursor) = position {
            request.stored = await core.reading { self.storedItems(cursor, at: moment) }
        }
        let fetched: Fetched<EntityList<Item>>
        do {
            fetched = try await within(
                resource.timeout,
                clock: core.configuration.monotonicClock,
                sleeper: core.configuration.monotonicClock
            ) { [request, core, key = node.key] in
                try await reason.around { () async throws in
                    guard core.configuration.mayUseNetwork() else {
                        throw LarderError(
                            .offline,
                            "The network may not be used at present: no page of \"\(key)\" was requested."
                        )
                    }
                    return try await resource.fetch(request)
                }
            }
        } catch let error as TimeLimitExceeded {
            throw LarderError(.timedOut, "A page of \"\(node.key)\" did not come within \(error.limit).", cause: error)
        } catch let error as LarderError
            where error.code == .gone || (error.status == 410 && error.code != .unexpectedReply)
        {
            return false
        }
        switch fetched.content {
        case .gone: return false
        case .notModified:
            guard let known, let renewed else {
                throw LarderError(
                    .unexpectedReply,
                    "A page of \"\(node.key)\" was reported as not modified, although the request had no validator."
                )
            }
            let time = moment.before(fetched.age).wall
            let bytes = try await core.changing { try self.confirm(renewed, known, fetched, at: time, asked: stamp) }
            let took = core.configuration.monotonicClock.uptime - moment.uptime
            core.configuration.onEvent(.revalidated(resource: node.key.name, took))
            core.configuration.onEvent(.spared(resource: node.key.name, bytes: bytes))
            return true
        case .value(let page):
            if case .around(let item) = position, !page.items.contains(where: { $0.entityID == item }) {
                throw LarderError(
                    .unexpectedReply,
                    "The page of \"\(node.key)\" around the item \(item) does not contain it: the source must answer "
                        + "`PageRequest.Position.around`, or report that the item is gone."
                )
            }
            let sent = Sent(
                position: position,
                place: place,
                limit: request.limit,
                stamp: stamp,
                moment: moment.before(fetched.age)
            )
            try await core.changing { try self.store(page, fetched, resource, sent) }
            let took = core.configuration.monotonicClock.uptime - moment.uptime
            core.configuration.onEvent(.fetched(resource: node.key.name, took))
            if !fetched.mayStore { core.configuration.onEvent(.notStored(resource: node.key.name)) }
            return true
        }
    }

    /// The stored items of the page that begins with a cursor; nil if it was not loaded before, or if items are partial: those could not
    /// stand in for what is fetched.
    private func storedItems(_ cursor: String, at moment: Moment) -> StoredItems? {
        guard resource.completeness == .complete,
            let page = node.content().value?.pages.first(where: { $0.start == .joined(cursor) })
        else { return nil }
        return StoredItems(storage: core, count: page.count, age: page.state.times.age(at: moment))
    }

    /// What a "not modified" reply to a request for a page would confirm; nil if the page must be fetched as a whole.
    private func confirmation(_ cursor: String) throws -> PageFacts.Confirmation? {
        let page = node.content().value?.pages.first { $0.start == .joined(cursor) }
        guard let state = page?.state, !state.isPartial, !state.isInvalidated else { return nil }
        return try list.confirmation(cursor)
    }

    /// Stores that a page is confirmed.
    ///
    /// - Returns: the size of its items in memory.
    private func confirm(
        _ cursor: String,
        _ known: PageFacts.Confirmation,
        _ fetched: Fetched<EntityList<Item>>,
        at time: WallTime,
        asked: Stamp
    ) throws -> Int {
        let stated = fetched.stated
        try store(mayStore: fetched.mayStore) { $0.confirm(cursor, known, stated, at: time, asked: asked) }
        let list = try list
        return list.index(ofPage: cursor).map { list.runs[$0].items.reduce(0) { $0 + core.entities.bytes(of: $1.key) } }
            ?? 0
    }

    /// A request that was answered.
    private struct Sent {
        let position: PageRequest.Position
        let place: TimelinePlace
        let limit: Int
        let stamp: Stamp
        /// When the request began, or earlier if a cache on the way has answered.
        let moment: Moment
    }

    private func store(
        _ page: EntityList<Item>,
        _ fetched: Fetched<EntityList<Item>>,
        _ resource: PagedResource<Item>,
        _ sent: Sent
    ) throws {
        let drafts = page.items.map { EntityDraft($0, completeness: resource.completeness) }
        let keys = drafts.map(\.key)
        var update = CacheUpdate()
        update.answered = node.storedKey
        update.isMemoryOnly = !fetched.mayStore
        update.steps = drafts.map { .put($0.asPart, validator: nil, stated: fetched.stated, source: .network) }
        let merge = QueryMerge(confirms: false, keys: keys) { query, context in
            // A list that was removed meanwhile is not created again by one of its older pages.
            if case .around = sent.position {} else if query.members.isEmpty && query.details.isEmpty { return }
            let incoming = IncomingPage(
                keys: keys.filter { context.stored.contains($0) },
                cursor: page.nextCursor,
                limit: sent.limit,
                times: PageTimes(fetched.stated, at: context.startedAt, asked: sent.stamp),
                validator: fetched.validator,
                newerCursor: page.previousCursor,
                receivedAt: context.receivedAt
            )
            try query.editRuns { list in
                switch (sent.position, sent.place) {
                case (.older(let cursor), let place):
                    list.take(incoming, at: place, cursor: cursor)
                    if place != .tail { list.keep(atMost: resource.keptMaximum) }
                case (.newer(let cursor), .newer(let gap)): list.takeNewer(incoming, inGap: gap, cursor: cursor)
                case (.around, _):
                    guard let isNewer = resource.isNewer else { return }
                    list.takeAround(incoming, isNewer, keptMaximum: resource.keptMaximum)
                case (.newest, _), (.newer, _): break
                }
            }
        }
        update.steps.append(.mergeQuery(node.key, merge))
        try core.commit(update, askedAt: sent.stamp, moment: sent.moment, isTolerant: true)
        if update.isMemoryOnly { try node.removeFromDisk() }
    }
}

extension PageTimes {
    /// The times of a page that was requested at a moment.
    init(_ stated: StatedFreshness?, at moment: WallTime, asked: Stamp) {
        self.init(
            fetchedAt: moment,
            validatedAt: moment,
            expiresAt: moment + (stated?.lifetime ?? CacheCore.longestLifetime),
            terms: stated?.terms ?? [],
            asked: asked
        )
    }
}
