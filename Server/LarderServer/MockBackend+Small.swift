extension MockBackend {
    /// Starts a backend with a small generated world: 20 people, 200 posts, no images. The same seed gives the same world.
    ///
    /// With the system clock connections never time out, because a test on a loaded machine may be slow. With a manual clock
    /// (`Configuration.use(_:)`) they time out as in `larder-server`.
    ///
    /// - Throws: an error if no port is free.
    public static func startSmall(seed: UInt64 = 1, _ configuration: Configuration = Configuration()) throws
        -> MockBackend
    {
        var numbers = WorldSize()
        numbers.seed = seed
        numbers.people = 20
        numbers.posts = 200
        numbers.conversations = 6
        numbers.messages = 120
        numbers.tasks = 24
        numbers.transfers = 200
        var configuration = configuration
        configuration.seed = configuration.seed ?? seed
        configuration.disableConnectionTimeouts()
        return try start(.generated(numbers, picturesFrom: nil), configuration)
    }
}
