import Larder
import LarderCoding

/// Requests to the control plane of a `larder-server`.
struct ControlClient {
    let server: String
    /// The token of the control plane, from `LARDER_CONTROL_TOKEN`; nil: none.
    let token: String?
    private let transport: SocketTransport

    init(_ arguments: Arguments, _ environment: [String: String]) {
        server = arguments.server
        transport = SocketTransport(timeout: .seconds(arguments.timeout))
        token = Self.token(environment)
    }

    static func token(_ environment: [String: String]) -> String? {
        environment["LARDER_CONTROL_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The number of the newest entry of the journal; 0 if the journal cannot be read.
    func newestEntry() async -> Int64 {
        // A journal that cannot be read is reported when its entries are.
        do throws(Failure) { return try await get("/journal?limit=1")["written"]?.integer ?? 0 } catch { return 0 }
    }

    /// - Throws: `Failure` if there is no control plane, or it may not be used.
    func get(_ path: String) async throws(Failure) -> JSONValue {
        var request = TransportRequest(url: "\(server)/_larder\(path)")
        if let token { request.fields.set(.authorization, "Bearer \(token)") }
        do {
            let response = try await transport.send(request)
            let document = response.body.isEmpty ? .null : try JSONParser.parse(response.body)
            guard (200..<300).contains(response.status.code) else {
                throw Failure(
                    document["detail"]?.string
                        ?? "\(server) has no control plane that may be used (status \(response.status.code)). "
                        + "Start larder-server there, or set LARDER_CONTROL_TOKEN."
                )
            }
            return document
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure("the control plane of \(server) does not answer: \(error)")
        }
    }
}
