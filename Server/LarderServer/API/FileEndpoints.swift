import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP

extension ControlEndpoints {
    /// `GET /_larder/files`: the files that the server was started with, the routes and the webhooks.
    static func files(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .get else { throw wrongMethod("GET") }
        let routes = call.plane.backend.customRoutes
        let webhooks = routes.webhooks
        return json(
            .members([
                "files": .array(call.plane.files.reports.map(\.json)),
                "routes": .array(routes.all.map { .string($0.name) }),
                "webhooks": .members([
                    "sent": .integer(Int64(webhooks.sent)), "failed": .integer(Int64(webhooks.failed)),
                    "lastFailure": webhooks.lastFailure.map { .string($0) },
                ]),
            ])
        )
    }
}
