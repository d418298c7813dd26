import Foundation
import Larder

/// Downloads each JPEG of the fixtures once over a network of a journey, and prints when its previews came, and after which part of the
/// file.
func stages(_ fixtures: String, _ journey: String) async throws {
    let server = try ServerProcess(fixtures, journey)
    for id in try pictures(fixtures, type: "image/jpeg") {
        let transport = CountingTransport(SocketTransport())
        let pipeline = ImagePipeline(ImagePipeline.Configuration(transport: transport))
        let request = ImageRequest(
            url: "\(server.url)/v1/images/\(id)?width=1280&format=jpeg",
            target: ImageTarget(width: 750, height: 563),
            wantsPreviews: true
        )
        let start = ContinuousClock.now
        var seen: [(time: Double, bytes: Int)] = []
        for try await _ in pipeline.stages(for: request) {
            seen.append((milliseconds(ContinuousClock.now - start), transport.bytes))
        }
        let total = Double(max(1, transport.bytes))
        print(
            id,
            "\(transport.bytes) bytes:",
            seen.map { String(format: "%.0f ms (%.0f %%)", $0.time, 100 * Double($0.bytes) / total) }
                .joined(separator: ", ")
        )
    }
    try server.stop()
}
