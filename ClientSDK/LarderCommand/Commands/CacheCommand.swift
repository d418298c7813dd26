import Larder
import LarderCoding
import LarderDemo

/// `larder cache clear`: removes the stored data. `larder doctor` shows what is stored.
struct CacheCommand {
    let context: CommandContext

    init(_ context: CommandContext) { self.context = context }

    func clear() throws {
        guard let disk = context.cache.disk else {
            throw Failure("The cache is in memory only. Choose a directory with --directory DIR.")
        }
        // The outbox and the session are not part of the cache and stay.
        try disk.removeAllItems()
        try context.client.images.configuration.disk?.removeAllItems()
        while try !disk.maintain() {}
        let terminal = context.terminal
        if terminal.isJSON { return terminal.json(.members(["cleared": .bool(true)])) }
        terminal.line(terminal.paint("✓ cleared; ", .green) + "the session and unsent operations are kept")
    }
}
