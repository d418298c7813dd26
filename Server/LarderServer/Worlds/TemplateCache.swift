import Glibc
import LarderCoding
import LarderSQLite

/// Caches the database made from a directory of fixtures, so that only the first start must read them.
///
/// It is in the user's cache directory, readable by the user only. Its name depends on the schema and on the size, modification
/// time and identity of every source file. If anything fails, the fixtures are read instead.
struct TemplateCache {
    private let path: String

    private static let files = [
        "world.json", "people.json", "posts.json", "accounts.json", "transfers.json", "conversations.json",
        "messages.json", "tasks.json", "images.json",
    ]

    /// Nil if there is no cache directory.
    init?(fixtures directory: String) {
        guard let folder = Self.folder() else { return nil }
        var key = "1 \(WorldSchema.fingerprint)"
        for file in Self.files {
            var status = stat()
            guard unsafe stat(directory + "/" + file, &status) == 0 else { return nil }
            let (changed, made) = (status.st_mtim, status.st_ctim)
            key += " \(file) \(status.st_dev) \(status.st_ino) \(status.st_size) "
            key += "\(changed.tv_sec).\(changed.tv_nsec) \(made.tv_sec).\(made.tv_nsec)"
        }
        let (high, low) = ContentHash.hash128(Array(key.utf8).span)
        path = folder + "/fixtures-" + String(high, radix: 16) + String(low, radix: 16) + ".sqlite"
    }

    /// The database, if it exists and is complete.
    func load() -> DatabaseImage? {
        guard let image = try? DatabaseImage(opening: path), let database = try? Database(.image(image)),
            (try? database.integer("SELECT count(*) FROM meta WHERE name = 'origin'")) == 1
        else { return nil }
        return image
    }

    /// Stores a database for the next start. If that fails, the next start only takes longer.
    func store(_ image: DatabaseImage) {
        Self.removeOthers(than: path)
        try? SourceFile.replace(path, with: image.bytes(), mode: 0o600)
    }

    private static func folder() -> String? {
        let base: String
        if let cache = unsafe getenv("XDG_CACHE_HOME"), unsafe cache.pointee == CChar(bitPattern: UInt8(ascii: "/")) {
            base = unsafe String(cString: cache)
        } else if let home = unsafe getenv("HOME"), unsafe home.pointee == CChar(bitPattern: UInt8(ascii: "/")) {
            base = unsafe String(cString: home) + "/.cache"
        } else {
            return nil
        }
        _ = unsafe mkdir(base, 0o700)
        let folder = base + "/larder"
        _ = unsafe mkdir(folder, 0o700)
        // Another user must not be able to place a file here.
        var status = stat()
        guard unsafe lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(),
            status.st_mode & 0o022 == 0
        else { return nil }
        return folder
    }

    /// Several sets of fixtures may be in use alternately; the oldest caches are removed.
    private static func removeOthers(than path: String) {
        guard let folder = folder() else { return }
        let names: [String]
        // A directory that cannot be read keeps its files until the next set.
        do { names = try SourceFile.names(in: folder, endingWith: ".sqlite") } catch { return }
        var found: [(path: String, time: Int)] = []
        for name in names {
            var status = stat()
            let file = folder + "/" + name
            guard name.hasPrefix("fixtures-"), file != path, unsafe lstat(file, &status) == 0 else { continue }
            found.append((file, status.st_mtim.tv_sec))
        }
        for old in found.sorted(by: { $0.time > $1.time }).dropFirst(7) { unsafe unlink(old.path) }
    }
}
