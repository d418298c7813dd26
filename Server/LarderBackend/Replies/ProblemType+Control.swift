import LarderCoding
package import LarderHTTP

extension ProblemType {
    // MARK: Control plane

    package static let limitReached = ProblemType(
        "limit-reached",
        .conflict,
        "A limit is reached",
        "A limit of the control plane is reached; `limit` is its value. Remove an item first."
    )
    package static let nameTaken = ProblemType(
        "name-taken",
        .conflict,
        "The name is taken",
        "Choose another name, or remove the item with this name."
    )
    package static let unknownWorld = ProblemType(
        "unknown-world",
        .notFound,
        "The world does not exist",
        "The world was never created, or it was removed. `nearest` lists worlds with similar names."
    )
    package static let controlRejected = ProblemType(
        "control-rejected",
        .forbidden,
        "The control plane does not accept this caller",
        "Without a control token it only accepts peers, hosts and origins on this machine, so that no web page and no other machine can control it."
    )
    package static let controlTokenRequired = ProblemType(
        "control-token-required",
        .unauthorized,
        "The control token is required",
        "Send `Authorization: Bearer TOKEN` with the token that the server was started with (--control-token)."
    )
    package static let verificationFailed = ProblemType(
        "verification-failed",
        .conflict,
        "The journal does not meet the expectations",
        "`failures` has the actual result and the nearest exchanges for each unmet expectation."
    )
    package static let waitEnded = ProblemType(
        "wait-ended",
        .conflict,
        "The condition did not hold in time",
        "The time limit ended first. `seen` is the last measured value."
    )

    package static let clientFailed = ProblemType(
        "client-failed",
        .conflict,
        "The client has not done it",
        "`detail` is the client's word."
    )

    package static func limitReached(_ detail: String, limit: Int) -> Problem {
        var problem = limitReached(detail)
        problem.extensions["limit"] = .integer(Int64(limit))
        return problem
    }
}
