import OrderedJobs

/// The seeds of a test with random cases. Each order of the jobs (`LARDER_ORDER_SEED`) has others, so that many orders try many
/// cases while one order is quick.
public func seeds(_ count: UInt64) -> ClosedRange<UInt64> {
    let first = (max(order_seed(), 1) - 1) % 1_000_000 * count + 1
    return first...first + count - 1
}
