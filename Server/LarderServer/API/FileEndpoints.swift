import LarderCoding
import LarderEngine
import LarderHTTP

/// The files that the server was started with, over HTTP.
enum FileEndpoints {
    static let routes = [ControlRoute.later(.get, "/files", read), .later(.post, "/files", write)]

    /// Writes the collections of `main` into their files.
    private static func write(_ call: ControlCall) throws(Problem) -> Reply? {
        guard let files = call.plane.collectionFiles else {
            throw ProblemType.invalidParameter("There are no files of --data into which documents can be written.")
        }
        do { return .control(["written": .array(try files.write().map { .string($0) })]) } catch let error as FileError
        {
            throw ProblemType.storageUnavailable(error.description)
        } catch { throw World.problem(error) }
    }

    private static func read(_ call: ControlCall) throws(Problem) -> Reply? {
        let routes = call.plane.backend.customRoutes
        let webhooks = routes.webhooks.totals
        return .control([
            "files": .array(call.plane.files.reports.map(\.json)),
            "routes": .array(routes.names.map { .string($0) }),
            "webhooks": .members([
                "sent": .int(webhooks.sent), "failed": .int(webhooks.failed),
                "lastFailure": webhooks.lastFailure.map { .string($0) },
            ]),
        ])
    }
}
