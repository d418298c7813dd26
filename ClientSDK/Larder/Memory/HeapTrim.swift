#if canImport(Glibc)
    import Glibc
#endif

/// Has the allocator give pages that it keeps for later back to the system, where it has a function for that (glibc's
/// `malloc_trim`); elsewhere allocators do so by themselves. Costs up to some milliseconds: for when memory is short.
enum HeapTrim {
    #if canImport(Glibc)
        private typealias Trim = @convention(c) (Int) -> Int32

        /// Looked up, because the header that declares it is not in the module.
        private static let function: Trim? = {
            guard let symbol = unsafe dlsym(nil, "malloc_trim") else { return nil }
            return unsafe unsafeBitCast(symbol, to: Trim.self)
        }()

        static func trim() { _ = function?(0) }
    #else
        static func trim() {}
    #endif
}
