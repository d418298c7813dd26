public import LarderStorage

extension Resource {
    var storedKey: StoredKey { shape.entity.map { .entity($0) } ?? .query(key) }

    /// The steps that store a value.
    ///
    /// - Parameter answer: validator, lifetime and completeness.
    func steps<Content>(storing value: Value, as answer: Fetched<Content>) throws(LarderError) -> [CacheUpdate.Step] {
        let stated = answer.stated
        let isOffDisk = isMemoryOnly || !answer.mayStore
        func put(_ draft: EntityDraft, validator: String?) -> CacheUpdate.Step {
            var draft = draft
            draft.isMemoryOnly = draft.isMemoryOnly || isOffDisk
            return .put(draft, validator: validator, stated: stated)
        }
        switch shape {
        case .single(let key, let codec, let version):
            let draft = EntityDraft.value(
                value,
                key,
                codec,
                version: version(value),
                completeness: answer.completeness
            )
            return [put(draft, validator: answer.validator)]
        case .normalized(let normalizer):
            var collector = EntityCollector()
            var query = DiskQuery(
                key,
                isComplete: answer.completeness.isComplete,
                entityTag: answer.validator,
                times: Freshness.Times.none.row
            )
            do {
                query.details = try normalizer.split(value, &collector)
            } catch {
                throw LarderError(.encoding, "\"\(key)\" could not be split into entities: \(error)", cause: error)
            }
            query.ids = collector.drafts.map(\.key)
            let steps = collector.drafts.map { put($0.asPart(of: storedKey), validator: nil) }
            let change = normalizer.merge?(query, stated) ?? ListChange(replacingBy: query, stated)
            return steps + [.changeList(key, change)]
        }
    }
}

extension CacheUpdate {
    /// Stores a value as if the source of a resource had returned it: an event, a bundle or another reply has brought it.
    ///
    /// - Parameters:
    ///   - value: the value to store.
    ///   - resource: the resource that it belongs to.
    ///   - completeness: whether the value has all its fields.
    ///   - validator: the validator that came with it.
    ///   - lifetime: how long it is fresh for readers that follow its source; nil: not stated.
    /// - Throws: `.encoding` if the value cannot be split into entities.
    public mutating func put<Value>(
        _ value: Value,
        for resource: Resource<Value>,
        completeness: Completeness = .complete,
        validator: String? = nil,
        lifetime: Duration? = nil
    ) throws(LarderError) {
        if resource.isMemoryOnly { steps.append(.keepOffDisk(resource.storedKey, isFinal: true)) }
        let answer = Fetched.value(value, validator: validator, lifetime: lifetime, completeness: completeness)
        steps += try resource.steps(storing: value, as: answer)
    }
}
