import Glibc

/// Duplicates of the descriptors of an open file, as a child process has them between fork(2) and exec(2).
package final class DescriptorTwin {
    private let descriptors: [Int32]

    /// - Throws: an error if the file is not open.
    package init(of path: String) throws {
        var (named, status) = (stat(), stat())
        var open: [Int32] = []
        if unsafe lstat(path, &named) == 0 {
            // The limit may be as high as 2^30.
            for descriptor in 0..<Int32(min(getdtablesize(), 65_536)) {
                guard unsafe fstat(descriptor, &status) == 0, status.st_ino == named.st_ino else { continue }
                if status.st_dev == named.st_dev { open.append(descriptor) }
            }
        }
        // Duplicates after the search, which would find them otherwise.
        descriptors = open.map { dup($0) }
        guard !descriptors.isEmpty else { throw RawClient.Failure(reason: "nobody has \(path) open") }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}
