import Foundation
import Larder

/// Replies with files, so that only the pipeline is measured.
struct FileTransport: Transport {
    let directory: String

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        do {
            let name = String(request.url.split(separator: "/").last ?? "").split(separator: "?")[0]
            return TransportResponse(
                status: .ok,
                body: try read("\(directory)/\(name)")
            )
        } catch {
            throw TransportError(.unreachable, "\(error)")
        }
    }
}
