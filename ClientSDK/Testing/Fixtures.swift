public import LarderServer

extension MockBackend {
    /// Starts a backend with a small world that is the same at every start: 20 people, 200 posts, no pictures.
    ///
    /// By the system's clock no connection of it times out, because a test that waits for a processor is no client that has left;
    /// by a clock that is moved by hand (`Configuration.use(_:)`) they do, as they do in `larder-server`.
    ///
    /// - Throws: when no port is free.
    public static func startSmall(seed: UInt64 = 1, _ configuration: Configuration = Configuration()) throws
        -> MockBackend
    {
        var numbers = WorldNumbers()
        numbers.seed = seed
        numbers.people = 20
        numbers.posts = 200
        numbers.conversations = 6
        numbers.messages = 120
        numbers.transfers = 200
        var configuration = configuration
        configuration.seed = configuration.seed ?? seed
        configuration.waitPatiently()
        return try start(.generated(numbers, picturesFrom: nil), configuration)
    }
}
