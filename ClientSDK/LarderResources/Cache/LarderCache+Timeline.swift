extension LarderCache {
    /// A paged list for one reader.
    ///
    /// - Parameters:
    ///   - policy: the read policy; nil: the resource's.
    ///   - holdsBackNew: whether new items are only counted until the reader takes them (`Timeline.showHeldBack`).
    public func timeline<Item: CacheEntity>(
        _ resource: PagedResource<Item>,
        _ policy: ReadPolicy? = nil,
        holdsBackNew: Bool = true
    ) -> Timeline<Item> {
        let engine = timelines.engine(of: resource)
        return Timeline(engine, engine.take(resource, policy), holdsBackNew: holdsBackNew)
    }
}
