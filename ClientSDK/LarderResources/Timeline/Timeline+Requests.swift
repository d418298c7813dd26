import LarderEvents
import LarderStorage
import LarderTime

/// The requests for pages, and how their replies are stored.
extension Timeline {
    private var list: RunList {
        get throws { try core.query(key)?.stored.query.runs() ?? RunList() }
    }

    /// Changes the stored list, if there is one.
    ///
    /// - Parameter mayStore: whether it may be written to the disk.
    private func store(mayStore: Bool = true, _ change: @escaping @Sendable (inout RunList) -> Void) throws {
        var update = CacheUpdate(answering: node.storedKey, mayStore: mayStore)
        let edit = ListChange(.part) { query, _ in
            // A list that was removed meanwhile is not created again.
            if query.members.isEmpty && query.details.isEmpty { return }
            try query.editRuns(change)
        }
        update.steps.append(.changeList(key, edit))
        try core.commit(update, isTolerant: true)
    }

    /// Fetches the page of a place. Concurrent calls for one place share the request.
    ///
    /// - Parameter isUserInitiated: whether it is requested although the last request has just failed.
    func load(_ place: TimelinePlace, isUserInitiated: Bool = false) async throws(LarderError) {
        let behavior = core.configuration.networkBehavior()
        guard behavior.allowsPaging || isUserInitiated && behavior.isOfflineByExperience else {
            // Only the caller gets this error, because the shown list is not affected.
            throw LarderError(
                .offline,
                "No more items of \"\(key)\" can be loaded: the network is unavailable or restricted. Try again when it is available."
            )
        }
        try await node.load(place, isForced: isUserInitiated) { [self] in
            try await fetch(place, isForced: isUserInitiated)
        }
    }

    /// Fetches the page of a place. If the server does not know the cursor any more, because its item is gone, the
    /// pages above are fetched again until one of them leads to the place, or up to a gap, which then reaches down to the place.
    ///
    /// - Parameter isForced: whether a person has asked to confirm the page.
    private func fetch(_ place: TimelinePlace, isForced: Bool) async throws {
        if case .around(let item) = place {
            guard try await ask(.around(item), at: place) else {
                throw LarderError(.gone, "\"\(key)\" has no item \(item) on the server.")
            }
            return
        }
        if place == .page(nil) { return try await newest(isForced: isForced) }
        if case .newer(let number) = place {
            let cursor = try await core.reading { try self.list.cursor(of: place) }
            if let cursor, try await ask(.newer(cursor), at: place) { return }
            // Without the cursor the gap is filled from its newer end.
            return try await fetch(.gap(number), isForced: isForced)
        }
        var used: Set<String> = []
        var hasAskedForNewest = false
        while case let stored = try await core.reading({ try self.list }), stored.has(place) {
            let cursor = stored.cursor(of: place)
            if let cursor, used.insert(cursor).inserted {
                if try await ask(.older(cursor), at: place, isForced: isForced && used.count == 1) { return }
                try await core.changing { try self.store { $0.forget(cursor) } }
            } else if let above = stored.cursors(above: place).first(where: { used.insert($0).inserted }) {
                if try await !ask(.older(above), at: .page(above)) {
                    try await core.changing { try self.store { $0.forget(above) } }
                }
            } else if let gap = stored.gap(above: place) {
                // A gap whose cursor was never known is filled from its newer end, the gap above it first.
                if cursor == nil { return try await fetch(.gap(gap), isForced: isForced) }
                try await core.changing { try self.store { $0.widenGap(above: place) } }
            } else if !hasAskedForNewest {
                hasAskedForNewest = true
                try await newest(isForced: cursor != nil || isForced)
                if cursor == nil { return }
            } else {
                throw LarderError(
                    .gone,
                    "The server no longer knows the cursors of \"\(key)\". Remove the list (`LarderCache.remove`), and read it again."
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
        let joined = try await core.reading { () async throws(LarderError) -> Flight? in
            try self.node.join(options, startedSince: now.uptime, isForced: isForced)
        }
        guard let flight = joined else { return }
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
        if case .page = place, case .older(let cursor) = position { renewed = cursor }
        let (known, stored) = try await core.reading { [renewed] in
            guard case .older(let cursor) = position else { return (PageFacts.Confirmation?.none, StoredItems?.none) }
            return (try renewed.flatMap { try self.confirmation($0) }, self.storedItems(cursor, at: moment))
        }
        var request = PageRequest(
            position,
            limit: known?.limit ?? resource.pageSize(core.configuration.networkBehavior()),
            validator: known?.validator,
            mustRevalidate: renewed != nil
        )
        request.stored = stored
        let cause = renewed == nil ? "a page was asked for" : "the page must be confirmed"
        let reason = RequestReason(
            key.description,
            cause: isForced ? "a refresh of a page" : cause,
            isUserInitiated: isForced
        )
        let fetched: Fetched<EntityList<Item>>
        do {
            fetched = try await node.send(reason, since: moment.uptime, within: resource.timeout) { [request] in
                try await resource.fetch(request)
            }
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
                    "A page of \"\(key)\" was reported as not modified, although the request had no validator."
                )
            }
            let time = moment.before(fetched.age).wall
            let bytes = try await core.changing {
                try self.confirm(renewed, known, fetched, at: time, asked: stamp.before(fetched.age))
            }
            let took = core.configuration.monotonicClock.uptime - moment.uptime
            core.configuration.onEvent(.revalidated(resource: key.name, took, bytes: bytes))
            return true
        case .value(let page):
            if case .around(let item) = position, !page.items.contains(where: { $0.entityID == item }) {
                throw LarderError(
                    .unexpectedReply,
                    "The page of \"\(key)\" around the item \(item) does not contain it: the source must answer "
                        + "`PageRequest.Position.around`, or report that the item is gone."
                )
            }
            try await core.changing { [request] in
                try self.store(
                    page,
                    fetched,
                    request,
                    at: place,
                    stamp.before(fetched.age),
                    moment.before(fetched.age)
                )
            }
            let took = core.configuration.monotonicClock.uptime - moment.uptime
            core.configuration.onEvent(.fetched(resource: key.name, took))
            if !fetched.mayStore { core.configuration.onEvent(.notStored(resource: key.name)) }
            return true
        }
    }

    /// The stored items of the page that begins with a cursor; nil if it was not loaded before, or if items are partial: those could not
    /// stand in for what is fetched.
    private func storedItems(_ cursor: String, at moment: Moment) -> StoredItems? {
        guard resource.completeness == .complete,
            let page = node.content().value?.pages.first(where: { $0.start == .joined(cursor) })
        else { return nil }
        return core.storedItems(page.items.count, age: page.facts.times.age(at: moment))
    }

    /// What a "not modified" reply to a request for a page would confirm; nil if the page must be fetched as a whole.
    private func confirmation(_ cursor: String) throws -> PageFacts.Confirmation? {
        let page = node.content().value?.pages.first { $0.start == .joined(cursor) }
        guard let facts = page?.facts, !facts.isPartial, facts.reason == nil else { return nil }
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

    /// Stores a page.
    ///
    /// - Parameter moment: when its request began, or earlier if a cache on the way has answered.
    private func store(
        _ page: EntityList<Item>,
        _ fetched: Fetched<EntityList<Item>>,
        _ request: PageRequest,
        at place: TimelinePlace,
        _ stamp: Stamp,
        _ moment: Moment
    ) throws {
        let resource = resource
        let drafts = page.items.map { EntityDraft($0, completeness: resource.completeness) }
        let keys = drafts.map(\.key)
        var update = CacheUpdate(answering: node.storedKey, mayStore: fetched.mayStore)
        update.steps += drafts.map { .put($0.asPart(of: node.storedKey), validator: nil, stated: fetched.stated) }
        let change = ListChange(.part, of: keys) { query, context in
            // A list that was removed meanwhile is not created again by one of its older pages.
            if case .around = request.position {} else if query.members.isEmpty && query.details.isEmpty { return }
            let times = Freshness.Times(fetched.stated, at: context.startedAt, asked: stamp)
            let removed = context.removed(from: &query)
            let known = keys.filter { context.stored.contains($0) && !removed.contains($0) }
            let isOlder = if case .older = request.position { true } else { false }
            let incoming = IncomingPage(
                keys: known,
                cursor: page.nextCursor,
                limit: request.limit,
                times: times,
                validator: known.count == keys.count && isOlder ? fetched.validator : nil,
                newerCursor: page.previousCursor,
                receivedAt: context.receivedAt
            )
            var hasChangedNewest = false
            try query.editRuns { list in
                let newest = list.runs[0].items
                defer { hasChangedNewest = list.runs[0].items != newest }
                switch (request.position, place) {
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
            // It stands for the newest page as it was: "not modified" would confirm another one.
            if hasChangedNewest { query.entityTag = nil }
        }
        update.steps.append(.changeList(key, change))
        try core.commit(update, askedAt: stamp, moment: moment, isTolerant: true)
    }
}
