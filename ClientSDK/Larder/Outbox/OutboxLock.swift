/// Lets one at a time send what is in an outbox that several processes share: an application and its extensions.
///
/// Whoever cannot have it goes on putting operations in, and asks again by a schedule of its own. It is advice, and no more: what
/// keeps an operation from being done twice is its key. Called from any thread, one call at a time.
public protocol OutboxLock: Sendable {
    /// Takes it, unless somebody else has it. Never waits.
    ///
    /// - Returns: whether it is held now.
    /// - Throws: where nobody can say; then nothing is sent, and it is asked again later.
    func take() throws -> Bool

    /// Lets it go; does nothing where it is not held.
    func release()
}
