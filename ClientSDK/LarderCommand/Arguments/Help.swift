import Foundation
import LarderServer

/// The text of `larder help`.
enum Help {
    /// The version, and the commit if the command was installed from one (`share/larder/COMMIT`).
    static var versionLine: String {
        let file = Bundle.main.executableURL?.deletingLastPathComponent().appendingPathComponent(
            "../share/larder/COMMIT"
        )
        // A command that was built and not installed has no such file.
        let commit = file.flatMap { try? String(contentsOf: $0, encoding: .utf8) }
        return "larder \(MockBackend.version)" + (commit.map { " (\($0.prefix(12)))" } ?? "")
    }

    static let text = """
        larder: a terminal client for larder-server, built on the Larder SDK

        USAGE
          larder COMMAND [options]

        READ
          feed [--live]                     the newest posts
          search TEXT                       people and posts with all words of the text
          profile [ID|HANDLE]               a profile; without an argument, your own
          accounts                          account balances, with their age
          chat [CONVERSATION] [--live]      conversations, or the messages of one
          tasks [--status S] [--assignee WHO] [--due DATE] [--sort due|newest]
                                            tasks that are not done; S is open, started, done or all
          images                            fetch the images of the feed and show which tier served them
          images --draw POST|IMAGE          draw one image in the terminal

        WRITE
          like POST, unlike POST            shown at once; queued until the server confirms it
          profile --edit FIELD=TEXT         displayName, bio or location; requires the server
          transfer FROM TO AMOUNT           accounts by ID or name; shown only after the server has confirmed it
          tasks add TITLE [--assignee WHO] [--due DATE]
          tasks start|done|reopen|delete ID, tasks assign ID WHO, tasks due ID DATE
                                            shown in their lists at once; queued until the server confirms them
          chat CONVERSATION --send TEXT     queued; sent in order and only once

        MAINTAIN
          sync [--live]                     apply changes from the change feed
          outbox [send]                     unsent and rejected operations
          outbox retry|keep|merge|theirs|drop ID    decide about a rejected one
          cache stats|clear                 what is stored, and its size; unsent changes are kept
          doctor                            check stores, outbox, network, memory and earlier runs
          doctor --recorder FILE            the same of an app, from the file of its flight recorder
          login, logout [--force]           logout erases all data of the account on this device

        TOUR
          tour [CHAPTER…] [--html FILE]     measure on this machine what the cache does, without a server

        OPTIONS OF ALL COMMANDS
          --server URL        address of larder-server       http://127.0.0.1:8080, or $LARDER_SERVER
          --user NAME         account to use                 last login, else ana, or $LARDER_USER
          --password WORD     password for the first login   larder, or $LARDER_PASSWORD
          --directory DIR     directory of the stores        ~/.local/state/larder
          --offline           send no requests: show stored data, queue changes
          --json              print JSON
          --timeout S         timeout of a request           10
          --wait S            wait for unsent changes        3
          --trace             print cache events on standard error
          --explain           say why each request was sent, and what the server's journal makes of it
          --colour WHEN       auto, always, never; NO_COLOR is respected

        OPTIONS OF READING COMMANDS
          --limit N           maximum number of items, up to 50
          --live              follow changes until Ctrl-C, or for --seconds N
          --refresh           always ask the server
          --policy NAME       cacheFirst, staleWhileRevalidate, networkFirst, cacheAndLoad, cacheOnly, networkOnly

        Exit codes: 0 success, 1 failure of the server, the network or the disk, 2 invalid arguments.
        """
}
