import Foundation
import Larder
import LarderModels
import LarderTime

/// What every command works with: an account's client, the terminal, and what the cache told.
final class Kitchen: Sendable {
    let arguments: Arguments
    let terminal: Terminal
    let state: StateDirectory
    let user: String
    let client: LarderClient
    let connection: Connection
    let journal: Journal
    /// What this run leaves for `larder doctor`.
    let recorder: RunRecorder
    let monitor: NetworkMonitor
    let networkExplanation: String
    let transport: any Transport
    /// What waited to be sent when the command began.
    let kept: [OutboxEntry]
    let clock = SystemWallClock()
    let uptime = SystemMonotonicClock()
    private let valve: Valve

    var now: WallTime { clock.now }
    var isOffline: Bool { arguments.isOffline }
    var cache: LarderCache { client.cache }

    /// How much of the server a command needs.
    enum Need: Sendable {
        /// It only looks at what is stored: nobody is asked and nothing sent.
        case nothing
        /// Who is signed in is enough, and nobody is signed in for it.
        case session
        /// Somebody has to be signed in.
        case signIn
        /// Somebody has to be signed in anew.
        case newSignIn
    }

    /// Opens the account's stores and signs in where nobody is.
    ///
    /// - Parameters:
    ///   - need: how much of the server the command needs.
    ///   - bytesMaximum: how much the store may hold from now on.
    init(
        _ arguments: Arguments,
        _ terminal: Terminal,
        environment: [String: String],
        need: Need = .signIn,
        bytesMaximum: Int64? = nil
    ) async throws {
        self.arguments = arguments
        self.terminal = terminal
        state = try StateDirectory(arguments.directory, environment: environment)
        if let problem = state.problem { terminal.note(problem) }
        user = arguments.user ?? state.user(on: arguments.server) ?? "ana"
        let journal = Journal(tellsEverythingTo: arguments.isTracing ? terminal : nil)
        self.journal = journal
        let recorder = RunRecorder(
            Self.record(arguments),
            in: Self.runsDirectory(Self.account(arguments.server, user), in: state)
        )
        self.recorder = recorder
        if arguments.isTracing, let failure = recorder.failure { terminal.note("this run is not recorded: \(failure)") }
        let valve = Valve()
        self.valve = valve
        let (source, explanation) = SystemNetworkSource.make()
        var monitoring = NetworkMonitor.Configuration()
        // A server on this machine needs no interface.
        monitoring.heedsInterfaces = !Self.isLocal(arguments.server)
        monitor = NetworkMonitor(source: source, configuration: monitoring, telemetry: recorder.telemetry)
        networkExplanation = explanation
        transport =
            arguments.isOffline
            ? ClosedTransport()
            : MonitoredTransport(
                SocketTransport(timeout: .seconds(arguments.timeout)),
                monitor: monitor,
                telemetry: recorder.telemetry,
                feature: RunRecorder.feature
            )
        var configuration = LarderClient.Configuration(transport: transport)
        configuration.followsLive = arguments.isLive
        // One command runs for a moment, and is told by hand whether there is a network: its own monitor and recorder note the rest.
        configuration.upkeep = .none
        configuration.cache.mayUseNetwork = { valve.isOpen }
        configuration.cache.onEvent = { event in
            journal.note(event)
            recorder.note(event)
        }
        if let bytesMaximum { configuration.cache.disk.bytesMaximum = bytesMaximum }
        do {
            client = try await LarderClient(
                server: arguments.server,
                account: Self.account(arguments.server, user),
                directory: state.path,
                configuration
            )
            // Before anything can be sent: what is told of it later must be known by then.
            kept = client.cache.outbox.entries
            connection = try await Self.connect(client, user, arguments, need)
        } catch {
            recorder.end(error)
            throw error
        }
        if connection.isOpen {
            valve.open()
            client.cache.networkReturned()
        }
    }

    /// What an account is called here: the same name on two servers is two people.
    static func account(_ server: String, _ user: String) -> String { "\(server) \(user)" }

    /// Where an account's pictures are.
    var picturesDirectory: String {
        DiskStore.directory(forAccount: Self.account(arguments.server, user) + " pictures", in: state.path)
    }

    /// Where it is recorded what commands of this account have done. Apart from its store, which removes what it does not know.
    var runsDirectory: String { Self.runsDirectory(Self.account(arguments.server, user), in: state) }

    private static func runsDirectory(_ account: String, in state: StateDirectory) -> String {
        DiskStore.directory(forAccount: account + " runs", in: state.path)
    }

    /// What is recorded of a command line: nothing of what was written in it. Who only looks at records leaves none.
    private static func record(_ arguments: Arguments) -> String? {
        if case .doctor = arguments.command { return nil }
        let flags = [
            arguments.isLive ? "--live" : nil, arguments.isRefresh ? "--refresh" : nil,
            arguments.isOffline ? "--offline" : nil,
        ]
        return ([arguments.command.name] + flags.compactMap { $0 }).joined(separator: " ")
    }

    private static func isLocal(_ server: String) -> Bool {
        ["http://127.", "http://localhost", "http://[::1]"].contains { server.hasPrefix($0) }
    }

    private static func connect(
        _ client: LarderClient,
        _ user: String,
        _ arguments: Arguments,
        _ need: Need
    ) async throws -> Connection {
        guard !arguments.isOffline, need != .nothing else { return .offline }
        if case .signedIn = client.session.state, need != .newSignIn { return .open }
        if need == .session { return .offline }
        do {
            try await client.signIn(handle: user, password: arguments.password ?? "larder")
            return .open
        } catch {
            guard error.code == .offline || error.code == .timedOut else { throw error }
            return .unreachable(error)
        }
    }

    /// What is to be said beside what is shown: that nobody answered.
    func noteConnection() {
        guard case .unreachable = connection else { return }
        terminal.note("\(arguments.server) cannot be reached; this is what is stored here")
    }

    /// Ends everything that runs.
    ///
    /// - Parameter error: what went wrong.
    func close(_ error: (any Error)? = nil) {
        client.close()
        recorder.end(error)
    }
}
