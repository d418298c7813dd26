/// Where a loop's connections read into, one at a time: idle ones hold no buffer. Confined to its loop.
///
/// `@safe`: the memory lives as long as the object, and is lent out by its own bounds only.
@safe final class ReadBuffer {
    private let memory: UnsafeMutableRawBufferPointer

    init(byteCount: Int) {
        unsafe memory = .allocate(byteCount: byteCount, alignment: 16)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit { unsafe memory.deallocate() }

    /// Reads what a socket has, as far as it fits.
    func receive(from descriptor: Int32) -> SystemCall.Outcome {
        unsafe SystemCall.receive(descriptor, into: memory)
    }

    /// Lends what was read last.
    @inline(__always) func withBytes<Result>(_ count: Int, _ body: (Span<UInt8>) -> Result) -> Result {
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: memory[..<count]).assumingMemoryBound(to: UInt8.self)
        return unsafe body(bytes.span)
    }
}
