extension LarderCache {
    /// A paged list for one reader.
    ///
    /// - Parameters:
    ///   - resource: the paged resource.
    ///   - policy: the read policy; nil: the resource's.
    ///   - readerIsAtTop: whether new items are inserted at once; see `Timeline.readerIsAtTop`, by which the app changes it.
    public func timeline<Item: CacheEntity>(
        _ resource: PagedResource<Item>,
        _ policy: ReadPolicy? = nil,
        readerIsAtTop: Bool = false
    ) -> Timeline<Item> {
        let engine = timelines.engine(of: resource)
        return Timeline(engine, engine.take(resource, policy), readerIsAtTop: readerIsAtTop)
    }
}
