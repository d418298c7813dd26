/// The read buffer of a loop, shared by its connections so that idle ones hold none. Confined to its loop.
///
/// `@safe`: the memory lives as long as the object and is accessed within its bounds only.
@safe final class ReadBuffer {
    private let memory: UnsafeMutableRawBufferPointer

    init(byteCount: Int) {
        unsafe memory = .allocate(byteCount: byteCount, alignment: 16)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit { unsafe memory.deallocate() }

    /// Reads from a socket, up to the buffer's size.
    func receive(from descriptor: Int32) -> SystemCall.Outcome {
        unsafe SystemCall.receive(descriptor, into: memory)
    }

    /// Calls a function with the bytes of the last read.
    @inline(__always) func withBytes<Result>(_ count: Int, _ body: (Span<UInt8>) -> Result) -> Result {
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: memory[..<count]).assumingMemoryBound(to: UInt8.self)
        return unsafe body(bytes.span)
    }
}
