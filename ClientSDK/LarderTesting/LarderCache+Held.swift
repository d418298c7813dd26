public import LarderResources

extension LarderCache {
    /// The stored entities of the types with their versions, for a comparison with the server's: the `held` of the convergence oracle.
    ///
    ///     let held = try client.cache.held(Post.self, Message.self)
    ///     let stale = try world.differences(held: held, types: "post,message", as: "ana").filter { $0.held != nil }
    ///
    /// Local changes do not count. Left out are invalidated entities, which the next read asks for, entities without a version, and
    /// those that are only in memory. Cost: reads all rows of the types.
    ///
    /// - Throws: `.storage` if the store cannot be read.
    public func held(_ types: any CacheEntity.Type...) throws(LarderError) -> [String: Int] {
        var held: [String: Int] = [:]
        for type in types {
            for (id, version) in try heldVersions(ofType: type.entityType) { held[id] = Int(version) }
        }
        return held
    }
}
