import Foundation
import LarderHTTP
import LarderResources
import LarderTime
import LarderTransport
import Synchronization

/// Shows a client in the dashboard of a `larder-server`, over one WebSocket that the client opens.
///
/// The server asks, and the client answers: while nobody looks nothing is sent. A server that is not there costs an attempt to connect
/// at growing intervals. Safe from any task.
final class ClientInspector: Sendable {
    /// A message of the server.
    private struct Order: Decodable, Sendable {
        let id: Int
        /// `report`, `show`, `hide`, `invalidate`, `refresh`, `offline`, `online`, `drop`.
        let action: String
        let key: String?
        let operation: Int64?
    }

    /// The answer to it: the report, an error, or neither.
    private struct Answer: Encodable, Sendable {
        let id: Int
        var report: ClientReport?
        var error: String?
    }

    /// What its failures are called in the events of the cache.
    private static let name = "larder.inspector"
    private static let retry = RetryPolicy(base: .seconds(1), ceiling: .seconds(60))
    /// How long a connection must last to reset the back-off.
    private static let stableAfter: Duration = .seconds(10)
    private let url: String
    private let token: String?
    private let webSockets: WebSocketClient
    private let parts: ClientReport.Parts
    /// The keys whose values are shown.
    private let shown = Mutex<Set<String>>([])

    /// - Parameters:
    ///   - server: the URL of the `larder-server`.
    ///   - token: its control token; nil if it needs none.
    init(_ server: String, token: String?, _ webSockets: WebSocketClient, _ parts: ClientReport.Parts) {
        let base = server.hasSuffix("/") ? String(server.dropLast()) : server
        url = (base.hasPrefix("http") ? "ws" + base.dropFirst(4) : base) + "/_larder/clients/connect"
        self.token = token
        self.webSockets = webSockets
        self.parts = parts
    }

    /// Connects until the task is cancelled.
    func run() async {
        let configuration = parts.cache.configuration
        let clock = configuration.monotonicClock
        var failures = 0
        // The server may come later: one event for all failures in a row.
        var isTold = false
        while !Task.isCancelled {
            do throws(WebSocketError) {
                let connection = try await webSockets.connect(
                    url,
                    fields: token.map { [.authorization: "Bearer \($0)"] } ?? Fields()
                )
                isTold = false
                let start = clock.uptime
                await answer(connection)
                // A server that closes at once is asked at growing intervals too.
                if clock.uptime - start >= Self.stableAfter { failures = 0 }
            } catch {
                if !isTold, error.code != .cancelled { report(LarderError(error)) }
                isTold = true
            }
            failures += 1
            let wait = Self.retry.backoffMaximum(attempt: failures) * configuration.random()
            do { try await clock.sleep(until: clock.uptime + wait) } catch { return }
        }
    }

    private func answer(_ connection: any WebSocketConnection) async {
        await withDiscardingTaskGroup { group in
            while true {
                let message: WebSocketClient.Message?
                do { message = try await connection.receive() } catch { break }
                guard let message else { break }
                guard case .text(let text) = message else { continue }
                do {
                    let order = try JSONDecoder().decode(Order.self, from: Data(text.utf8))
                    group.addTask { await self.answer(order, connection) }
                } catch {
                    report(
                        LarderError(.unexpectedReply, "The inspector sent a message that is no order.", cause: error)
                    )
                }
            }
            group.cancelAll()
        }
        connection.cut()
    }

    private func report(_ failure: LarderError) {
        parts.cache.configuration.onEvent(.failed(resource: Self.name, failure))
    }

    private func answer(_ order: Order, _ connection: any WebSocketConnection) async {
        var answer = Answer(id: order.id)
        do throws(LarderError) { answer.report = try await carryOut(order) } catch { answer.error = error.description }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            try await connection.send(String(decoding: try encoder.encode(answer), as: UTF8.self))
        } catch {
            // The connection has ended, which the server has reported to the caller.
        }
    }

    private func carryOut(_ order: Order) async throws(LarderError) -> ClientReport? {
        switch order.action {
        case "report": return await ClientReport(parts, showing: shown.withLock { $0 })
        case "show": _ = shown.withLock { $0.insert(order.key ?? "") }
        case "hide": _ = shown.withLock { $0.remove(order.key ?? "") }
        case "invalidate": try await parts.cache.invalidate(held: order.key ?? "")
        case "refresh": try await parts.cache.refresh(held: order.key ?? "")
        case "offline", "online":
            guard let network = parts.network else {
                throw LarderError(.invalidArgument, "The client has no network monitor (services.network).")
            }
            network.setOverride(order.action == "offline" ? .offline : nil)
        case "drop": try parts.cache.outbox.drop(OperationID(rawValue: order.operation ?? 0))
        default: throw LarderError(.invalidArgument, "This client does not know the action \"\(order.action)\".")
        }
        return nil
    }
}
