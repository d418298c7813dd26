import LarderStorage
import LarderTime

/// A page that is fetched again.
enum PageRenewal: Sendable, Hashable {
    case newest
    /// A page by its cursor.
    case page(String)
}

/// Which pages are fetched again.
extension TimelineEngine {
    /// The next page to fetch again for some items; nil if there is none left.
    ///
    /// - Parameters:
    ///   - asked: the pages that were requested before.
    ///   - options: the settings of the reader for whom fresh pages are not fetched; nil: they are.
    ///   - start: when the refresh began. A page that was confirmed since is not fetched.
    func nextRenewal(
        _ wanted: Set<String>,
        _ asked: Set<PageRenewal>,
        _ options: ReadOptions?,
        since start: Moment
    ) -> PageRenewal? {
        guard let list = node.content().value else { return nil }
        let now = core.now()
        var items = list.items[...]
        for (index, page) in list.pages.enumerated() {
            let own = items.prefix(page.count)
            items = items.dropFirst(page.count)
            let isDue =
                options.map { node.freshness(page.state, $0, at: now) != .fresh }
                ?? (page.state.times.validatedAt < start.wall || page.state.isInvalidated)
            guard isDue, own.contains(where: { wanted.contains($0.entityID) }),
                let target = target(of: index, list.pages), !asked.contains(target)
            else { continue }
            return target
        }
        return nil
    }

    /// The nearest page at or above an index that can be requested, without a gap in between.
    private func target(of index: Int, _ pages: [Timeline<Item>.List.Page]) -> PageRenewal? {
        for page in pages[...index].reversed() {
            switch page.start {
            case nil: return .newest
            case .joined(let cursor): if !page.isCursorGone { return .page(cursor) }
            case .gap: return nil
            }
        }
        return nil
    }
}
