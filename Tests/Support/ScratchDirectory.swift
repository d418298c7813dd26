import Foundation

/// A directory that is gone, with all that is in it, when nobody holds it any more. For tests.
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
            // Left for whoever clears the system's temporary files: no test is wrong for that.
        }
    }

    /// Who may do what with a file in it; nil where it is not there.
    package func mode(_ name: String) throws -> Int? {
        guard FileManager.default.fileExists(atPath: path + "/" + name) else { return nil }
        return try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
    }
}
