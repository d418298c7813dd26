import LarderStorage

extension Timeline {
    /// Loads the page around an item, unless the item is loaded, so that the list can be opened at it: a message that was found by a
    /// search, the last read position.
    ///
    /// Loaded items stay, with gaps where items between them and the page are missing. From now on `loadOlder` and `loadNewer` extend the
    /// run of items that contains this one. The resource needs `PagedResource.isNewer`.
    ///
    /// - Throws: `.gone` if the source has no such item; `.invalidArgument` if the resource cannot be opened at items; the error of the
    ///   request. The shown items stay.
    public func open(at id: Item.ID) async throws(LarderError) {
        guard resource.isNewer != nil else {
            throw LarderError(
                .invalidArgument,
                "\"\(key)\" cannot be opened at the item \(id): set `PagedResource.isNewer`, and answer `PageRequest.Position.around`."
            )
        }
        let key = id.description
        let isLoaded = await storedList?.items.contains { $0.entityID == key } ?? false
        if !isLoaded { try await load(.around(key), isUserInitiated: true) }
        setAnchor(key)
    }

    /// Fetches the page of newer items at the upper end of the run of items at which the timeline was opened (`open(at:)`).
    ///
    /// If the source has stated no cursor for newer items there, the gap is filled from its newer end.
    ///
    /// - Parameter isUserInitiated: as for `loadOlder`.
    /// - Returns: whether newer items are missing above. Without a gap above nothing is requested: `refresh` fetches what is new.
    /// - Throws: the error of the request. The shown items stay.
    @discardableResult
    public func loadNewer(isUserInitiated: Bool = false) async throws(LarderError) -> Timeline<Item>.Progress {
        guard let list = await storedList, let gap = list.gaps(around: anchor).newer else { return .finished }
        guard list.items.count < resource.keptMaximum else { return .full }
        try await load(gap.newerPlace, isUserInitiated: isUserInitiated)
        return await storedList?.gaps(around: anchor).newer == nil ? .finished : .more
    }
}

extension Timeline.List {
    /// The gaps at both ends of the run that contains an item; none if the item is not in the list.
    func gaps(around id: String?) -> (newer: Timeline<Item>.Gap?, older: Timeline<Item>.Gap?) {
        let index = segments.firstIndex { segment in
            guard let id, case .items(let items) = segment else { return false }
            return items.contains { $0.entityID == id }
        }
        guard let index else { return (nil, nil) }
        let above = index > segments.startIndex ? segments[index - 1].gap : nil
        let below = index + 1 < segments.endIndex ? segments[index + 1].gap : nil
        return (above, below)
    }
}

extension Timeline.Gap {
    /// The place of the page at its older end.
    var newerPlace: TimelinePlace {
        guard case .gap(let number) = place else { return place }
        return .newer(number)
    }
}
