package import Testing

/// Waits until something holds that no event announces, such as the state of a thread of the server. If the test's time limit ends
/// before, that is an issue at the call.
package func reached(
    sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
) async rethrows {
    while try await !condition() {
        guard !Task.isCancelled else {
            Issue.record("This was not reached.", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}
