import Foundation
import Larder

/// Replies with files, so that only the pipeline is measured.
struct FileTransport: Transport {
    let directory: String

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        do {
            let name = String(request.url.split(separator: "/").last ?? "").split(separator: "?")[0]
            return TransportStream(TransportResponse(status: .ok, body: try read("\(directory)/\(name)")))
        } catch {
            throw TransportError(.unreachable, "\(error)")
        }
    }
}
