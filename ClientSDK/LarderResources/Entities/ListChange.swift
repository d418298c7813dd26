import LarderStorage
import LarderTime

/// A change of a list that depends on what is stored of it. Within a commit all changes of lists are of this type.
struct ListChange: Sendable {
    /// Where a change comes from.
    enum Origin: Sendable {
        /// The reply to a request for the list, which confirms it, with what the source has stated. A later one is not overtaken.
        case reply(StatedFreshness?)
        /// The reply to a request for the newest page, which confirms the list. The stamps of the runs say which items it must not change.
        case newestPage(StatedFreshness?)
        /// The reply that a list with the validator has not changed. A later one is not overtaken.
        case confirmation(validator: String?, StatedFreshness?)
        /// Another page, or an event.
        case part
        /// An edit of the keys: nothing is changed unless the list is stored, and the replies to earlier requests get it too.
        case edit
    }

    /// The inputs of the change besides the list.
    struct Context: Sendable {
        /// The stamp of the request, when it began, less the stated `Age`, and when its answer is stored.
        var stamp: Stamp
        var startedAt: WallTime
        var receivedAt: WallTime
        /// When the commit began.
        var committed: Stamp
        /// The keys of the entities that exist, in memory, on the disk or as values that a later reply has brought and that are lost.
        var stored: Set<EntityKey>

        /// The keys that other edits since a request have taken out of a timeline: its page does not bring them back. If such an edit is
        /// forgotten, the timeline becomes stale.
        ///
        /// - Parameter asked: when the request began; nil: as the change.
        func removed(from query: inout DiskQuery, since asked: Stamp? = nil) -> Set<EntityKey> {
            let asked = asked ?? stamp
            if query.edits.forgotten > asked { query.invalid = max(query.invalid, query.edits.forgotten) }
            return query.edits.removals(since: asked, besides: stamp).subtracting(query.ids)
        }
    }

    let origin: Origin
    /// When the write was sent whose reply it is; nil: it is none.
    var sentAt: Stamp?
    /// The entities of the answer. Those that are known to be deleted are not in `Context.stored`.
    var keys: [EntityKey] = []
    /// Changes the list, which is empty if none is stored.
    let apply: @Sendable (inout DiskQuery, Context) throws -> Void

    init(
        _ origin: Origin,
        of keys: [EntityKey] = [],
        _ apply: @escaping @Sendable (inout DiskQuery, Context) throws -> Void
    ) {
        (self.origin, self.keys, self.apply) = (origin, keys, apply)
    }

    /// Replaces a list by a reply, with the edits since its request began.
    init(replacingBy answer: DiskQuery, _ stated: StatedFreshness?) {
        self.init(.reply(stated), of: answer.ids) { query, context in
            let deleted = Set(answer.ids).subtracting(context.stored)
            // The edits first: an item may follow one that is deleted.
            let keys = query.edits.applied(to: answer.ids, askedAt: context.stamp, in: query.ids)
                .filter { !deleted.contains($0) }
            query.invalid = max(query.invalid, query.edits.forgotten)
            // The validator stands for the keys of the reply.
            query.entityTag = keys == answer.ids ? answer.entityTag : nil
            query.members = ListMembers(keys)
            (query.isComplete, query.details) = (answer.isComplete, answer.details)
            query.answered = context.committed
        }
    }
}
