import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import Synchronization

extension SourceFiles.Source {
    static func routes(_ path: String, _ routes: CustomRoutes) -> Self {
        SourceFiles.Source(kind: "routes", path: path) {
            let reader = try RouteReader(path)
            routes.replace(with: reader.routes)
            let count = reader.routes.count == 1 ? "1 route" : "\(reader.routes.count) routes"
            return SourceFiles.Loaded(summary: count, directories: reader.directories)
        }
    }

    /// Collections. The world `main` and later worlds begin with the new ones.
    ///
    /// - Parameter first: the contents that `main` has.
    static func data(_ path: String, _ worlds: WorldRegistry) throws -> Self {
        let used = Mutex(try CollectionReader.read(path).fingerprint)
        return SourceFiles.Source(kind: "data", path: path) {
            let contents = try CollectionReader.read(path)
            let isNew = used.withLock { used in
                defer { used = contents.fingerprint }
                return used != contents.fingerprint
            }
            if isNew { try worlds.restart() }
            return SourceFiles.Loaded(summary: contents.collectionSummary, directories: [path])
        }
    }

    /// A script of faults. It starts anew, without the faults and steps of the one before.
    static func faults(_ path: String, _ plane: ControlPlane, read: @escaping @Sendable () throws -> [UInt8]) -> Self {
        SourceFiles.Source(kind: "faults", path: path) {
            let script: FaultScript
            let bytes = try read()
            do { script = try FaultScript(json: bytes) } catch let problem as Problem {
                guard let error = problem.errors.first else {
                    throw RouteError(description: "\(path): \(problem.detail ?? problem.title)")
                }
                let line = JSONLines.line(of: error.pointer, in: bytes)
                throw RouteError(description: "\(path):\(line): \(error.pointer) \(error.detail)")
            } catch let error as JSONError {
                throw RouteError(description: "\(path):\(error.line): column \(error.column): \(error.reason)")
            }
            let main = plane.worlds.main
            if main.control.script.cancel() { main.control.faults.removeAll() }
            let warnings = try plane.run(script, in: main)
            let count = script.steps.count == 1 ? "1 step" : "\(script.steps.count) steps"
            return SourceFiles.Loaded(summary: count, directories: [], warnings: warnings)
        }
    }
}

extension ControlPlane {
    /// Loads the files of a configuration.
    func load(_ source: WorldSource, _ configuration: MockBackend.Configuration) throws {
        if configuration.watchesFiles { try files.watch() }
        do {
            if let path = configuration.routes { try files.add(.routes(path, backend.customRoutes)) }
            if case .collections(let directory) = source { try files.add(.data(directory, worlds)) }
        } catch {
            files.stop()
            throw error
        }
    }
}
