import Larder
import LarderCoding
import LarderDemo

/// `larder cache clear`: removes the stored data. `larder doctor` shows what is stored.
struct CacheCommand {
    let context: CommandContext

    func clear() throws {
        guard let disk = context.cache.disk else {
            throw Failure("The cache is in memory only. Choose a directory with --directory DIR.")
        }
        // The outbox and the session are not part of the cache and stay.
        try disk.removeAllItems()
        try context.client.images.configuration.disk?.removeAllItems()
        while try !disk.maintain() {}
        let terminal = context.terminal
        let text = terminal.paint("✓ cleared; ", .green) + "the session and unsent operations are kept"
        terminal.result([("cleared", .bool(true))], text)
    }
}
