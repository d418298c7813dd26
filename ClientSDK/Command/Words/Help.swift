/// What `larder help` says.
enum Help {
    static let version = "0.1.0"

    static let text = """
        larder — shows on a terminal what an app with Larder shows on a screen

        USAGE
          larder COMMAND [options]

        LOOK
          feed [--live]                     the newest posts
          profile [ID|HANDLE]               a person; without one, yourself
          accounts                          balances, as the server has just said
          chat [CONVERSATION] [--live]      conversations, or what is said in one
          images                            fetch the feed's pictures and tell where they came from
          images --draw POST|IMAGE          draw one here

        CHANGE
          like POST, unlike POST            shown at once, kept until the server has it
          profile --edit FIELD=TEXT         displayName, bio or location; with the server's word for it
          transfer FROM TO AMOUNT           accounts by identifier or name; never shown before it has happened
          chat CONVERSATION --send TEXT     in order, and never twice

        KEEP
          sync [--live]                     read what has changed elsewhere
          outbox [send|retry ID|drop ID]    what is still to be sent, and what was refused
          cache stats|clear|trim BYTES|export FILE
          doctor                            stores, unsent changes, network, memory and earlier runs, and why
          doctor --telemetry FORMAT         what was measured in them, as json or for prometheus
          login, logout [--force]           logout leaves nothing of the account here

        EVERYWHERE
          --server URL        where larder-server is         http://127.0.0.1:8080, or $LARDER_SERVER
          --user NAME         whose eyes to see with         who logged in last, else ana, or $LARDER_USER
          --password WORD     for the first time             larder, or $LARDER_PASSWORD
          --directory DIR     where the cache is kept        ~/.local/state/larder
          --offline           ask nobody: show what there is, keep what is changed
          --json              for programs
          --timeout S         for a reply                    10
          --wait S            for unsent changes to leave    3
          --trace             tell what the cache does, on standard error
          --colour WHEN       auto, always, never; NO_COLOR is respected

        WHERE SOMETHING IS SHOWN
          --limit N           how many, up to 50
          --live              follow what changes, until Ctrl-C or for --seconds N
          --refresh           ask the server, whatever is stored
          --policy NAME       cacheFirst, staleWhileRevalidate, networkFirst, cacheAndLoad, cacheOnly, networkOnly

        A wrong option ends with one line and exit code 2, what the server or the network refuses with 1.
        """
}
