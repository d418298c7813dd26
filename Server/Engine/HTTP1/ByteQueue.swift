/// Bytes that are added at the end and taken from the front.
///
/// The part that was taken is dropped as soon as it is longer than the rest when bytes are added. So the queue holds at most
/// twice the bytes that wait, and a byte is moved once on average.
struct ByteQueue {
    /// The bytes that wait, behind those that were taken already.
    private(set) var bytes: [UInt8] = []
    /// Where the bytes that wait begin.
    private(set) var start = 0

    /// How many bytes wait.
    var count: Int { bytes.count - start }

    var isEmpty: Bool { start == bytes.count }

    mutating func append(_ more: [UInt8]) {
        guard !isEmpty else {
            // Shared and not copied: an event that is sent to thousands exists once.
            (bytes, start) = (more, 0)
            return
        }
        dropTaken()
        bytes.append(contentsOf: more)
    }

    mutating func append(_ more: Span<UInt8>) {
        dropTaken()
        unsafe more.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    }

    mutating func removeFirst(_ count: Int) {
        start += count
        if isEmpty { (bytes, start) = ([], 0) }
    }

    private mutating func dropTaken() {
        guard start > count else { return }
        bytes = Array(bytes[start...])
        start = 0
    }
}
