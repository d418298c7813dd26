/// Checks a server's health, for containers without curl.
enum HealthCheck {
    /// The time limit of a check, in seconds.
    private static let timeoutSeconds = 3

    static func run(_ url: String) throws {
        let status = try ControlClient(url, timeoutSeconds: timeoutSeconds).ask("GET", "/healthz").status
        guard status == 200 else {
            throw ControlClient.Failure(description: "\(url) answered \(status) instead of 200")
        }
    }
}
