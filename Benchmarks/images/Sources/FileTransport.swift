import Foundation
import Larder

/// Answers with files, so that nothing is measured but the pipeline.
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
