/// Asks a server whether it is well, for containers that have no curl.
enum HealthCheck {
    /// How long a server that is well may take, in seconds.
    private static let patience = 3

    static func run(_ url: String) throws {
        let status = try ControlClient(url, patience: patience).ask("GET", "/healthz").status
        guard status == 200 else {
            throw ControlClient.Failure(description: "\(url) answers with \(status), not with 200")
        }
    }
}
