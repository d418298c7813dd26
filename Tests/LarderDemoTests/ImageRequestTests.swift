import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderTesting
import TestSupport
import Testing

@Suite("Requests for images of posts", .oneMinute)
struct ImageRequestTests {
    @Test func `the height follows the aspect ratio, whatever sizes the server states`() async throws {
        let directory = try ScratchDirectory()
        var configuration = LarderClient.Configuration(transport: ScriptedTransport(script: []))
        configuration.services = .none
        configuration.followsLive = false
        let client = try await LarderClient(
            server: "http://test",
            account: "ana",
            directory: directory.path,
            configuration
        )
        var image = try JSONDecoder().decode(
            Post.Image.self,
            from: Data(#"{"id":"1","url":"/i","width":1280,"height":960,"alt":"","placeholder":"","widths":[]}"#.utf8)
        )
        #expect(client.imageRequest(for: image, width: 640).target == ImageTarget(width: 640, height: 480))
        image.width = 3
        image.height = 1
        #expect(client.imageRequest(for: image, width: 300).target == ImageTarget(width: 300, height: 100))
        for (width, height) in [(1, Int.max), (.max, .max), (.min, .max), (.max, .min), (0, 0)] {
            image.width = width
            image.height = height
            #expect(client.imageRequest(for: image, width: 640).target?.width == 640)
        }
        client.close()
    }
}
