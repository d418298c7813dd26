import Synchronization

/// Counts the bytes of a response's content as they were received, before they are decoded.
package final class CodedByteCount: Sendable {
    private let count = Atomic(0)

    package init() {}

    /// The bytes so far.
    package var value: Int { count.load(ordering: .relaxed) }

    func add(_ bytes: Int) { count.add(bytes, ordering: .relaxed) }
}
