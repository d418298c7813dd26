import LarderCoding
import LarderEngine
import LarderHTTP

extension ControlEndpoints {
    /// `POST /_larder/files` writes the collections of `main` into their files; `GET` shows the files that the server was started with, the routes and the webhooks.
    static func files(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        if method == .post {
            guard let files = call.plane.collectionFiles else {
                throw ProblemType.invalidParameter("There are no files of --data into which documents can be written.")
            }
            do {
                return json(.members(["written": .array(try files.write().map { .string($0) })]))
            } catch let error as FileError {
                throw ProblemType.storageUnavailable(error.description)
            } catch { throw World.problem(error) }
        }
        guard method == .get else { throw wrongMethod("GET, POST") }
        let routes = call.plane.backend.customRoutes
        let webhooks = routes.webhooks.totals
        return json([
            "files": .array(call.plane.files.reports.map(\.json)),
            "routes": .array(routes.names.map { .string($0) }),
            "webhooks": .members([
                "sent": .integer(Int64(webhooks.sent)), "failed": .integer(Int64(webhooks.failed)),
                "lastFailure": webhooks.lastFailure.map { .string($0) },
            ]),
        ])
    }
}
