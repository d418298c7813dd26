extension Exchange {
    /// Lets a wait of the exchange end when the client leaves. From any thread, after the wait has begun.
    ///
    /// - Parameters:
    ///   - isPending: whether the wait is not over; a later wait must not be replaced by one that is.
    ///   - end: ends the wait. Called on the loop.
    package func end(while isPending: @escaping @Sendable () -> Bool, by end: @escaping @Sendable () -> Void) {
        let register: @Sendable () -> Void = { if isPending() { whenAbandoned(end) } }
        if loop.isCurrent { register() } else { loop.execute(register) }
    }
}
