/// A FIFO queue of bytes.
///
/// The consumed prefix is dropped when it is longer than the rest and bytes are added. So the queue holds at most twice the
/// pending bytes, and each byte is moved once on average.
package struct ByteQueue: Sendable {
    /// The pending bytes, after the consumed prefix.
    package private(set) var bytes: [UInt8] = []
    /// The offset of the pending bytes.
    package private(set) var start = 0

    package init() {}

    /// The number of pending bytes.
    package var count: Int { bytes.count - start }

    package var isEmpty: Bool { start == bytes.count }

    package mutating func append(_ more: [UInt8]) {
        guard !isEmpty else {
            // Shared, not copied: an event for thousands of readers exists once.
            (bytes, start) = (more, 0)
            return
        }
        if start > count { (bytes, start) = (Array(bytes[start...]), 0) }
        bytes.append(contentsOf: more)
    }

    package mutating func removeFirst(_ count: Int) {
        start += count
        if isEmpty { (bytes, start) = ([], 0) }
    }
}
