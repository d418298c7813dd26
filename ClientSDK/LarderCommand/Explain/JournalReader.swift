import Larder
import LarderCoding

/// Reads the server's journal for `--explain`.
struct JournalReader {
    let server: String
    /// The token of the control plane, from `LARDER_CONTROL_TOKEN`; nil: none.
    let token: String?
    private let transport = SocketTransport(timeout: .seconds(5))

    init(server: String, token: String?) {
        self.server = server
        self.token = token
    }

    /// The number of the newest entry; 0 if the journal cannot be read.
    func newest() async -> Int64 {
        // A journal that cannot be read is reported when its entries are.
        do throws(Failure) { return try await read("limit=1")["written"]?.integer ?? 0 } catch { return 0 }
    }

    /// The entries after a number.
    ///
    /// - Throws: `Failure` if there is no journal, or it may not be read.
    func entries(after number: Int64) async throws(Failure) -> [JSONValue] {
        try await read("kind=exchange&limit=10000&afterNumber=\(number)")["items"]?.array ?? []
    }

    private func read(_ query: String) async throws(Failure) -> JSONValue {
        var request = TransportRequest(url: "\(server)/_larder/journal?\(query)")
        if let token { request.fields.set(.authorization, "Bearer \(token)") }
        do {
            let response = try await transport.send(request)
            guard response.status.code == 200 else {
                throw Failure(
                    "\(server) has no journal that may be read (status \(response.status.code)). Start larder-server there, or set "
                        + "LARDER_CONTROL_TOKEN."
                )
            }
            return try JSONParser.parse(response.body)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure("the journal of \(server) cannot be read: \(error)")
        }
    }
}
