import Foundation

/// A temporary directory that is removed with its content when this object is released.
package final class ScratchDirectory {
    package let path: String

    package init() throws {
        let place = FileManager.default.temporaryDirectory.appendingPathComponent("larder-test-\(UUID().uuidString)")
        path = place.path
        try FileManager.default.createDirectory(
            at: place,
            withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700]
        )
    }

    deinit {
        do { try FileManager.default.removeItem(atPath: path) } catch {
            // A leftover in the system's temporary directory does not fail a test.
        }
    }

    /// The permissions of a file in it; nil if it does not exist.
    package func mode(_ name: String) throws -> Int? {
        guard FileManager.default.fileExists(atPath: path + "/" + name) else { return nil }
        return try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
    }
}
