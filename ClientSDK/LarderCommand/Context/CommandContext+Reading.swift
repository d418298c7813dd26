import Larder

/// The snapshots of one read of a resource.
struct Reading<Value: Sendable & Equatable>: Sendable {
    /// The last snapshot.
    var snapshot: Snapshot<Value>
    /// The sources of all snapshots in order, with the time until each.
    var shown: [(source: String, time: Duration)]

    /// Sources and times: `after 3 ms`, or `from disk after 3 ms, then from network after 12 ms`.
    var timing: String {
        if shown.count == 1 { return "after \(TimeText.text(shown[0].time))" }
        return shown.map { source, time in "from \(source) after \(TimeText.text(time))" }.joined(separator: ", then ")
    }
}

extension CommandContext {
    /// The policy of the arguments; nil: that of the resource.
    var askedPolicy: ReadPolicy? { arguments.isRefresh ? .networkFirst(timeout: nil) : arguments.policy?.value }

    /// Reads a resource with the policy of the arguments until no request is in flight.
    ///
    /// - Parameter fields: the fields that are shown, if their lifetimes differ from that of the value.
    /// - Throws: `Failure` if there is no value.
    func read<Value>(
        _ resource: Resource<Value>,
        fields: Set<String> = [],
        called name: String
    ) async throws -> Reading<Value> {
        let reading = try await readIfAvailable(resource, fields: fields)
        guard reading.snapshot.value == nil else { return reading }
        if let error = reading.snapshot.refreshError { throw Failure(error, server: arguments.server) }
        if case .unreachable(let error) = connection { throw Failure(error, server: arguments.server) }
        if isOffline || arguments.policy?.name == "cacheOnly" {
            throw Failure("No data of \(name) is stored yet. Run once without --offline to ask \(arguments.server).")
        }
        throw Failure("There is no \(name) on \(arguments.server).")
    }

    /// Reads a paged list: the first items, and the pages after the first one until there are `count`.
    ///
    /// - Throws: `Failure` if there is no list. A page that cannot be loaded is a note.
    func read<Item>(
        _ list: Resource<Timeline<Item>.List>,
        _ timeline: Timeline<Item>,
        atMost count: Int,
        called name: String
    ) async throws -> (items: [Item], reading: Reading<Timeline<Item>.List>) {
        let reading = try await read(list, called: name)
        var items = reading.snapshot.value?.items ?? []
        var hasMore = connection.isOpen && reading.snapshot.refreshError == nil && arguments.policy?.name != "cacheOnly"
        // A server may send pages without a new item for ever.
        var emptyPages = 0
        while hasMore, items.count < count, emptyPages < 2 {
            do {
                let known = items.count
                hasMore = try await timeline.loadOlder(isUserInitiated: true) == .more
                items = try await cache.value(list, .cacheOnly).items
                emptyPages = items.count > known ? 0 : emptyPages + 1
            } catch {
                terminal.note("not all of \(name) could be loaded: \(error.description)")
                hasMore = false
            }
        }
        return (Array(items.prefix(count)), reading)
    }

    /// The first items of a list that is read as one page. A page that ends before `count` items is a note.
    func first<Item>(
        _ count: Int,
        of snapshot: Snapshot<EntityList<Item>>,
        called name: String
    ) -> ArraySlice<Item> {
        guard let list = snapshot.value else { return [] }
        if list.items.count < count, list.nextCursor != nil {
            terminal.note("the first \(list.items.count) \(name) are shown; the server has more")
        }
        return list.items.prefix(count)
    }

    /// Reads a resource as `read` does; the snapshot may have no value.
    func readIfAvailable<Value>(
        _ resource: Resource<Value>,
        fields: Set<String> = []
    ) async throws -> Reading<Value> {
        let policy = connection.isOpen ? askedPolicy : .cacheOnly
        let start = uptime.uptime
        var shown: [(source: String, time: Duration)] = []
        var last: Snapshot<Value>?
        for await snapshot in cache.snapshots(resource, policy, fields: fields) {
            if let source = snapshot.source { shown.append((source.rawValue, uptime.uptime - start)) }
            last = snapshot
            if !snapshot.isFetching { break }
        }
        guard let last else { throw Failure("The store was closed during the read. Try again.") }
        return Reading(snapshot: last, shown: shown)
    }

    /// Reads a resource, cache first; nil after any failure.
    func readQuietly<Value>(_ resource: Resource<Value>) async -> Value? {
        do {
            return try await cache.value(resource, connection.isOpen ? .cacheFirst : .cacheOnly)
        } catch {
            return nil
        }
    }

    /// Shows a list as JSON, or as lines and a footer.
    func show<Value>(
        _ items: some Sequence<some Encodable>,
        _ reading: Reading<Value>,
        orElse empty: String = "",
        _ lines: () async -> [String]
    ) async throws {
        guard !terminal.isJSON else { return terminal.json(try reading.snapshot.json(with: items)) }
        let lines = await lines()
        for line in lines.isEmpty ? [empty] : lines { terminal.line(line) }
        terminal.line(footer(reading))
    }

    /// The last line of the output: badge and timing.
    func footer<Value>(_ reading: Reading<Value>) -> String {
        terminal.badge(reading.snapshot, at: now) + terminal.paint("   (\(reading.timing))", .dim)
    }
}
