import Foundation
import Larder
import LarderDemo
import LarderHTTP
import LarderModels

/// The state that all commands share: the account's client, the terminal and the events of this run.
final class CommandContext: Sendable {
    let arguments: Arguments
    let terminal: Terminal
    let state: StateDirectory
    let user: String
    let client: LarderClient
    let connection: Connection
    let events: CacheEventLog
    /// Records this run for `larder doctor`.
    let recorder: RunRecorder
    let monitor: NetworkMonitor
    let networkExplanation: String
    let transport: any Transport
    /// Prints the events of the command on standard error; nil without `--trace`.
    private let trace: Task<Void, Never>?
    /// The requests of the command, for `--explain`; nil without it.
    let requests: RequestLog?
    /// The server's journal and its newest entry before the command; nil without `--explain`.
    let journal: (control: ControlClient, start: Int64)?
    /// The operations that were in the outbox when the command started.
    let initiallyPending: [Outbox.Entry]
    let clock = SystemWallClock()
    let uptime = SystemMonotonicClock()
    private let networkGate: NetworkGate

    var now: WallTime { clock.now }
    var isOffline: Bool { arguments.isOffline }
    var cache: LarderCache { client.cache }

    /// What a command needs of the server.
    enum Requirement: Sendable {
        /// Only the stores are used: no request is sent.
        case storeOnly
        /// A stored session is used; the command does not sign in.
        case storedSession
        /// The stored session is used, or the command signs in.
        case session
        /// The command always signs in.
        case newSession
    }

    /// Opens the account's stores, and signs in if the command requires it.
    init(
        _ arguments: Arguments,
        _ terminal: Terminal,
        environment: [String: String],
        requirement: Requirement = .session
    ) async throws {
        self.arguments = arguments
        self.terminal = terminal
        state = try StateDirectory(arguments.directory, environment: environment)
        if let problem = state.problem { terminal.note(problem) }
        user = arguments.user ?? state.user(on: arguments.server) ?? "ana"
        let events = CacheEventLog()
        self.events = events
        let recorder = RunRecorder(
            Self.record(arguments),
            in: Self.runsDirectory(Self.account(arguments.server, user), in: state)
        )
        self.recorder = recorder
        if arguments.isTracing, let failure = recorder.failure { terminal.note("this run is not recorded: \(failure)") }
        let networkGate = NetworkGate()
        self.networkGate = networkGate
        let (source, explanation) = NetworkMonitor.systemSource()
        var monitoring = NetworkMonitor.Configuration()
        // A server on this machine is reachable without a network interface.
        monitoring.requiresInterface = !(HTTPURL(arguments.server)?.isLocal ?? false)
        let telemetry = recorder.telemetry
        trace =
            arguments.isTracing
            ? telemetry.log { severity, line in terminal.note("\(severity.rawValue) \(line)") } : nil
        monitor = NetworkMonitor(source: source, configuration: monitoring) { telemetry.record($0) }
        networkExplanation = explanation
        let requests = arguments.isExplaining ? RequestLog() : nil
        self.requests = requests
        if arguments.isExplaining {
            let control = ControlClient(arguments, environment)
            journal = (control, await control.newestEntry())
        } else {
            journal = nil
        }
        let sockets = SocketTransport(timeout: .seconds(arguments.timeout))
        transport =
            arguments.isOffline
            ? ClosedTransport()
            : MonitoredTransport(
                sockets,
                monitor: monitor,
                makeRequestID: requests.map { log in { @Sendable in log.makeID() } },
                onExchange: { requests?.note($0) }
            )
        var configuration = LarderClient.Configuration(transport: transport)
        configuration.webSockets = sockets.webSockets()
        configuration.followsLive = arguments.isLive
        if arguments.isInspected {
            configuration.inspector = arguments.server
            configuration.inspectorToken = ControlClient.token(environment)
        }
        // The command has its own monitor.
        configuration.services = .none
        configuration.services.telemetry = .given(telemetry)
        configuration.cache.mayUseNetwork = { networkGate.isOpen }
        configuration.cache.onEvent = { events.note($0) }
        do {
            client = try await LarderClient(
                server: arguments.server,
                account: Self.account(arguments.server, user),
                directory: state.path,
                configuration
            )
            // Read before anything can be sent, so that every outcome can be reported.
            initiallyPending = client.cache.outbox.entries
            connection = try await Self.connect(client, user, arguments, requirement)
        } catch {
            recorder.end(error)
            throw error
        }
        if connection.isOpen {
            networkGate.open()
            client.cache.networkReturned()
        }
    }

    /// The name of the account on this device: unique by server and user.
    static func account(_ server: String, _ user: String) -> String { "\(server) \(user)" }

    /// The directory of the run records.
    var runsDirectory: String { Self.runsDirectory(Self.account(arguments.server, user), in: state) }

    private static func runsDirectory(_ account: String, in state: StateDirectory) -> String {
        DiskStore.directory(forAccount: account + " runs", in: state.path)
    }

    /// The recorded form of a command line: the command and its flags, without values. Nil for `doctor`, which only reads records.
    private static func record(_ arguments: Arguments) -> String? {
        if arguments.name == "doctor" { return nil }
        let flags = [
            arguments.isLive ? "--live" : nil, arguments.isRefresh ? "--refresh" : nil,
            arguments.isOffline ? "--offline" : nil,
        ]
        return ([arguments.name] + flags.compactMap { $0 }).joined(separator: " ")
    }

    private static func connect(
        _ client: LarderClient,
        _ user: String,
        _ arguments: Arguments,
        _ requirement: Requirement
    ) async throws -> Connection {
        guard !arguments.isOffline, requirement != .storeOnly else { return .offline }
        if case .signedIn = client.session.state, requirement != .newSession { return .open }
        if requirement == .storedSession { return .offline }
        do {
            try await client.signIn(handle: user, password: arguments.password ?? "larder")
            return .open
        } catch {
            guard [.offline, .untrusted, .timedOut].contains(error.code) else { throw error }
            return .unreachable(error)
        }
    }

    /// Prints that the server cannot be reached, if so.
    func noteConnection() {
        guard case .unreachable = connection else { return }
        terminal.note("\(arguments.server) cannot be reached; showing stored data")
    }

    /// Closes the client, ends the record of the run, and prints the rest of the trace.
    func close(_ error: (any Error)? = nil) async {
        client.close()
        recorder.end(error)
        trace?.cancel()
        await trace?.value
    }
}
