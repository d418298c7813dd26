import Glibc
import LarderArguments
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderSQLite
import LarderServer
import LarderTLS
import LarderTime

/// The command: parses the arguments, serves until a signal arrives, and stops gracefully.
@main
enum Main {
    static func main() async {
        do {
            let arguments = try Arguments(Array(CommandLine.arguments.dropFirst()))
            switch arguments.action {
            case .help(let text): Terminal.print(text)
            case .version: Terminal.print(Help.versionLine)
            case .check: try check(arguments)
            case .initialize(let directory): try CollectionExample.write(to: directory)
            case .importRoutes(let file):
                let (routes, omitted) = try RouteImport.routes(from: try SourceFile.bytes(file), named: file)
                if let omitted { Terminal.warn(omitted) }
                Terminal.print(String(decoding: routes.dropLast(), as: UTF8.self))
            case .checkHealth(let url):
                let status = try ControlClient(url, timeoutSeconds: 3).ask("GET", "/healthz").status
                if status != 200 { Terminal.fail("\(url) answered \(status) instead of 200", code: 1) }
            case .serve: try await serve(arguments)
            case .control(let command): try await command.run()
            case .scenarios(let command): try await command.run()
            case .certificate(let command): try command.run()
            }
        } catch let error as UsageError {
            Terminal.fail(error.message, code: 2)
        } catch let error as FileError {
            Terminal.fail(error.description, code: 2)
        } catch {
            Terminal.fail("\(error)", code: 1)
        }
    }

    private static func serve(_ arguments: Arguments) async throws {
        let signals = StopSignals()
        var configuration = arguments.configuration
        configuration.announce = { Terminal.warn($0) }
        configuration.watchesFiles =
            configuration.routes != nil || arguments.data != nil || arguments.script != nil
            || configuration.contract != nil
        configuration.certificates = try certificates(arguments)
        if let url = arguments.upstream {
            configuration.origin = .server(url)
            if let file = arguments.authorities { configuration.proxy.tls.roots = .only(file: file) }
            if configuration.proxy.tls.insecurelyAcceptsAnyCertificate {
                Terminal.warn("--insecure: the certificate of \(url.authority) is not checked")
            }
            if !arguments.given.contains("--body-limit") { configuration.server.bodyBytesMaximum = 64 << 20 }
        }
        if let path = arguments.recording { configuration.origin = .recording(try SourceFile.bytes(path)) }
        let room = DescriptorLimit.lift(forConnections: configuration.server.connectionsMaximum)
        if room < configuration.server.connectionsMaximum {
            Terminal.warn("the system's limit allows about \(room) open connections; further ones wait (see ulimit -n)")
        }
        let source = source(arguments)
        let hasDatabase = configuration.databasePath.map { Database.fileExists($0) } ?? false
        let backend = try naming(configuration.databasePath) { try MockBackend.start(source, configuration) }
        if case .generated = source, arguments.worldSize == nil, !hasDatabase {
            Terminal.warn(
                "there are no fixtures in ./Fixtures or beside the executable; serving a generated world (see --fixtures)"
            )
        }
        try prepare(backend, arguments)
        if !arguments.isQuiet { Terminal.print(Greeting.text(backend, arguments)) }
        signals.wait()
        await backend.stop(grace: .seconds(5))
    }

    /// Opens the database file of the command line; SQLite's errors get its name.
    private static func naming<Result>(_ path: String?, _ open: () throws -> Result) throws -> Result {
        do { return try open() } catch {
            let text = "\(error)"
            guard let path, error is SQLiteError || error is MigrationError, !text.contains(path) else { throw error }
            throw ControlClient.Failure(description: "\(path): \(text)")
        }
    }

    private static func certificates(_ arguments: Arguments) throws -> ServerCertificates? {
        if let certificate = arguments.certificate, let key = arguments.key {
            return .files(certificate: certificate, key: key)
        }
        return arguments.servesTLS ? .development(directory: try CertificateCommand.directory()) : nil
    }

    /// Sets the clock and the faults from the command line.
    private static func prepare(_ backend: MockBackend, _ arguments: Arguments) throws {
        let world = backend.main
        if let (mode, time) = arguments.clock { world.clock.set(mode, at: time) }
        if let journey = arguments.journey { try world.set(journey) }
        if let path = arguments.script {
            for warning in try backend.run(scriptAt: path, reading: { try SourceFile.bytes(path) }) {
                Terminal.warn("\(path): \(warning)")
            }
        }
    }

    private static func check(_ arguments: Arguments) throws {
        guard let path = arguments.configuration.databasePath else { return }
        let report = try naming(path) { try DatabaseCheck.run(path) }
        for line in report.lines { Terminal.print(line) }
        if !report.isSound { exit(1) }
    }

    private static func source(_ arguments: Arguments) -> WorldSource {
        if arguments.upstream != nil || arguments.recording != nil { return .empty }
        if let directory = arguments.data { return .collections(directory: directory) }
        let found = arguments.fixtures ?? FixtureDirectory.find()
        if arguments.configuration.routes != nil, arguments.fixtures == nil, arguments.worldSize == nil {
            return .empty
        }
        if arguments.worldSize == nil, let found { return .fixtures(directory: found) }
        return .generated(
            arguments.worldSize ?? WorldSize(),
            picturesFrom: found.flatMap { unsafe access($0, R_OK) == 0 ? $0 : nil }
        )
    }
}
