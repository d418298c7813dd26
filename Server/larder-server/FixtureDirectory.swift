import Glibc

/// Finds the fixtures of an installed or a built server, from any working directory.
enum FixtureDirectory {
    /// The places to look at, the first that exists counts: `$LARDER_FIXTURES`, `./Fixtures`, `Fixtures` beside the executable, and
    /// `../share/larder/Fixtures`, where `make install` puts them.
    static func candidates(environment: String?, executable: String?) -> [String] {
        var places: [String] = []
        if let environment, !environment.isEmpty { places.append(environment) }
        places.append("Fixtures")
        if let executable, let slash = executable.lastIndex(of: "/") {
            let folder = executable[..<slash]
            places += ["\(folder)/Fixtures", "\(folder)/../share/larder/Fixtures"]
        }
        return places
    }

    /// The directory of the fixtures; nil if there is none.
    static func find(executable: String? = executable) -> String? {
        candidates(environment: Environment["LARDER_FIXTURES"], executable: executable).first {
            unsafe access($0 + "/world.json", R_OK) == 0
        }
    }

    /// The path of this executable, with symbolic links resolved; nil if the system does not tell.
    static var executable: String? {
        guard let path = unsafe realpath("/proc/self/exe", nil) else { return nil }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }
}

/// The environment of the process. It is read at the start, before any thread is created.
enum Environment {
    /// All variables, as `NAME=VALUE`.
    static var all: [String] {
        var lines: [String] = []
        var next = unsafe environ
        while let line = unsafe next.pointee {
            unsafe lines.append(String(cString: line))
            unsafe next += 1
        }
        return lines
    }

    static subscript(name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}
