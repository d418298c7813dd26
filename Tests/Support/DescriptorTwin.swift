#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Second descriptors of a file that this process has open, as a child has them between fork(2) and exec(2).
package final class DescriptorTwin {
    private let descriptors: [Int32]

    /// - Throws: where nobody has the file open.
    package init(of path: String) throws {
        var (named, status) = (stat(), stat())
        var open: [Int32] = []
        if unsafe lstat(path, &named) == 0 {
            // Some systems let a process have a thousand million.
            for descriptor in 0..<Int32(min(getdtablesize(), 65_536)) {
                guard unsafe fstat(descriptor, &status) == 0, status.st_ino == named.st_ino else { continue }
                if status.st_dev == named.st_dev { open.append(descriptor) }
            }
        }
        // Not while looking: it would find its own.
        descriptors = open.map { dup($0) }
        guard !descriptors.isEmpty else { throw RawClient.Failure(reason: "nobody has \(path) open") }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}
