import Glibc

/// Lets the allocator return free pages to the system if it has a function for that (glibc's `malloc_trim`); other allocators do so
/// by themselves. Costs up to some milliseconds: for memory pressure only.
package enum HeapTrim {
    private typealias Trim = @convention(c) (Int) -> Int32

    /// Looked up at run time, because the header that declares it is not in the module.
    private static let function: Trim? = {
        guard let symbol = unsafe dlsym(nil, "malloc_trim") else { return nil }
        return unsafe unsafeBitCast(symbol, to: Trim.self)
    }()

    package static func trim() { _ = function?(0) }
}
