import LarderCoding
import LarderEngine
import LarderHTTP
import Synchronization

extension SourceFiles.Source {
    static func routes(_ path: String, _ routes: CustomRoutes) -> Self {
        SourceFiles.Source(kind: "routes", path: path) { directories in
            var reader = RouteReader(path)
            defer { directories = reader.directories }
            try reader.read()
            routes.replace(with: reader.routes)
            return SourceFiles.Loaded(count: reader.routes.count, "route")
        }
    }

    /// The OpenAPI description that requests and replies are checked against.
    static func contract(_ path: String, _ checks: ContractChecks) -> Self {
        SourceFiles.Source(kind: "contract", path: path) { _ in
            let contract = try Contract(try OpenAPIDocument(at: path), named: path)
            checks.replace(with: contract)
            return SourceFiles.Loaded(count: contract.operations.count, "operation", warnings: contract.warnings)
        }
    }

    /// Collections. The world `main` and later worlds begin with the new ones.
    static func data(_ files: CollectionFiles) -> Self {
        SourceFiles.Source(kind: "data", path: files.directory) { directories in
            directories = [files.directory]
            return try files.load()
        }
    }

    /// A script of faults. It starts anew, without the faults and steps of the one before.
    static func faults(_ path: String, _ plane: ControlPlane, read: @escaping @Sendable () throws -> [UInt8]) -> Self {
        let latest = FileScript()
        return SourceFiles.Source(kind: "faults", path: path) { _ in
            let bytes = try read()
            let main = plane.worlds.main
            let script = try FileError.naming(path, bytes) {
                let script = try FaultScript(json: bytes)
                try plane.check(script, in: main)
                return script
            }
            let progress = ScriptProgress(stepCount: script.steps.count)
            if let earlier = latest.replace(by: progress) {
                earlier.cancel()
                main.control.faults.removeAll()
            }
            let warnings = try plane.start(script, progress, in: main)
            return SourceFiles.Loaded(count: script.steps.count, "step", warnings: warnings)
        }
    }

    /// The script of the file that runs; users can have started others since. Safe from any thread.
    private final class FileScript: Sendable {
        private let progress = Mutex<ScriptProgress?>(nil)

        func replace(by next: ScriptProgress) -> ScriptProgress? {
            progress.withLock { progress in
                defer { progress = next }
                return progress
            }
        }
    }
}

extension FileError {
    /// Reads a document of the user; errors name the file and the line.
    static func naming<Value>(_ path: String, _ bytes: [UInt8], _ read: () throws -> Value) throws -> Value {
        do { return try read() } catch let problem as Problem {
            guard !problem.errors.isEmpty else {
                throw FileError("\(path): \(problem.detail ?? problem.title)")
            }
            throw FileError(path, bytes, problem.errors)
        } catch let error as JSONError {
            throw FileError("\(path):\(error.line): column \(error.column): \(error.reason)")
        }
    }
}

extension ControlPlane {
    /// Loads the files of a configuration.
    func load(_ configuration: BackendConfiguration) throws {
        if configuration.watchesFiles { try files.watch() }
        do {
            if let path = configuration.contract {
                for warning in try files.add(.contract(path, contractChecks)) {
                    configuration.announce?("\(path): \(warning)")
                }
            }
            if let path = configuration.routes { try files.add(.routes(path, backend.customRoutes)) }
            if let collectionFiles { try files.add(.data(collectionFiles)) }
        } catch {
            files.stop()
            throw error
        }
    }
}
