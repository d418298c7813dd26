import LarderServer

/// The text of `--help`.
enum Help {
    /// The version, and the commit if the server was installed from one (`share/larder/COMMIT`).
    static var versionLine: String {
        let path = FixtureDirectory.executable.flatMap { executable in
            executable.lastIndex(of: "/").map { "\(executable[..<$0])/../share/larder/COMMIT" }
        }
        let version = "larder-server \(MockBackend.version)"
        // A server that was built and not installed has no such file.
        guard let path, TextFile.exists(path) else { return version }
        do {
            return "\(version) (\(String(decoding: try TextFile.bytes(path).prefix(12), as: UTF8.self)))"
        } catch {
            return "\(version) (unknown commit: \(error))"
        }
    }

    /// The names of all options in the text.
    static var options: [String] {
        text.split { !$0.isLetter && $0 != "-" }.filter { $0.hasPrefix("--") }.map { String($0) }
    }

    static let text = """
        larder-server — a mobile backend for local work and tests

        USAGE
          larder-server [options]
          larder-server init DIR                       writes an example of your own data for --data
          larder-server routes from FILE               routes for --routes from OpenAPI (JSON) or HAR
          larder-server proxy --to URL [options]       in front of your own server
          larder-server proxy --play FILE [options]    answers from a recording (recording save FILE)
          larder-server certificate [--format pem|der|android] [--output FILE]
                                                       the certificate that clients of --tls must trust

        ADDRESS
          --host ADDRESS          address to listen on            127.0.0.1
          --port PORT             0 selects any free port        8080
          --tls                   https and wss too, on the same port, with certificates of the development
                                  authority; see larder-server certificate. https://expired.localhost and
                                  not-yet-valid, wrong-host, unknown-authority have faulty ones
          --certificate FILE --key FILE    https with your own certificate and key (PEM)
          --loops N               event loops, one thread each    1

        DATA
          --fixtures DIR          a directory of fixtures. Default: $LARDER_FIXTURES, ./Fixtures, or the
                                  installed ones; if there are none, a generated world
          --data DIR              your own collections instead of the demo: NAME.json, each an array of
                                  objects with an id, or db.json
          --routes PATH           your own API: routes in a JSON file, or the *.json files of a directory;
                                  without data or fixtures there is no demo API. Files of --routes, --data
                                  and --faults are loaded again when they change
          --seed N                generated data instead; sizes:
          --people N --posts N --conversations N --messages N --tasks N --transfers N
          --database PATH         store the state in a SQLite file (default: in memory)
          --no-power-loss-safety  faster commits, which survive a crash but not power loss
          --check                 check the database's schema and ledger, then exit

        PROXY
          --ca FILE               for https: trust only these authorities (PEM or DER), not the system's
          --insecure              for https: accept any certificate of your server
          --allow-host NAME       accept requests for that host too; repeatable
          --no-world-paths        paths below /w/ are your server's and name no worlds

        LIMITS
          --rate-limit N          requests per minute and caller      off
          --head-limit BYTES      request head                        16384
          --body-limit BYTES      request body                        1048576
          --connection-limit N                                        10000
          --head-timeout S        arrival of a request                10
          --idle-timeout S        between requests                    75
          --token-ttl S           access tokens                       3600
          --tombstone-retention S tombstones in the change feed       604800

        FAULT INJECTION
          --profile NAME          simulate a network: 3g, train, tunnel, offline, …
          --faults FILE           a script of timed steps, in JSON
          --clock SPEC            real, frozen, frozen@2026-01-01T00:00:00Z, x60
          --world-seed N          the seed of everything random, for repeatable runs
          --journal N             size of the journal                  4096
          --no-journal            disable the journal
          --worlds N              maximum number of worlds             2000
          --world-idle S          remove worlds that nobody has used for so long
          --snapshots DIR         directory for snapshot files
          --control-token TOKEN   require a token for the control plane
          --control-origin ORIGIN allow pages of that origin; repeatable
          --no-control            disable the control plane over HTTP

        CONTROL OF A RUNNING SERVER  (larder-server COMMAND [--server URL] [--world ID] [--json])
          worlds, clock, faults, profile, gates, held, journal, verify, wait, conduct,
          act, actors, changes, ledger, recording; see larder-server COMMAND --help

        TESTS OF ANY CLIENT  (larder-server scenarios run [NAME…] -- COMMAND)
          scenarios               named cases, from lost replies to captive portals, each judged

        LOG
          --log text|json         one line per request on standard error
          --quiet                 print errors only

        OTHER
          --check-health URL      exit code 0 if the server at URL answers (for containers)
          --no-response-cache     disable the response cache (for measurements)
          --version, --help

        ENVIRONMENT
          LARDER_FIXTURES         a directory of fixtures
          LARDER_CONTROL_TOKEN    the default of --control-token, also for commands
          LARDER_SERVER           the default of --server, for commands

        An invalid option prints one line and exits with code 2. SIGTERM and SIGINT stop gracefully.
        """
}
